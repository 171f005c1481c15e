package sandbox

import "strings"

// maxNames bounds what is tried for one message.
const maxNames = 6

var (
	// Node: EACCES: permission denied, open '/x'
	nodeAfter = lazyRegexp(`^, ([a-z]+) ['"]`)
	// Ruby: Permission denied @ rb_sysopen - /x
	rubyAfter = lazyRegexp(`^ @ (\S+) - (.+?)(?: \(Errno::\w+\))?$`)
	// C++: filesystem error: cannot create directory: Read-only file system [/x]
	cppAfter = lazyRegexp(`^ \[(/[^\]]*)\]`)
	// Java: java.nio.file.AccessDeniedException: /x
	javaAfter = lazyRegexp(`^: (/.+)$`)
	// What may follow an error that ends its message.
	endAfter = lazyRegexp(`^(?: \(os error \d+\)| \(\d+\)| at \S+ line \d+|[.)!])*$`)
)

// namesAfter reads what some languages print behind the error. op may be known
// from it, too.
func namesAfter(after string) (op string, names []name) {
	if match := rubyAfter().FindStringSubmatch(after); match != nil {
		return lineOp(strings.ReplaceAll(match[1], "_", " ")), []name{{match[2], true}}
	}
	if match := cppAfter().FindStringSubmatch(after); match != nil {
		return "", []name{{match[1], true}}
	}
	if match := nodeAfter().FindStringSubmatch(after); match != nil {
		op = lineOp(match[1])
		after = after[len(match[0])-1:]
	} else {
		// Python: [Errno 13] Permission denied: '/x'
		rest := strings.TrimLeft(after, " ")
		if !strings.HasPrefix(rest, ":") {
			return "", nil
		}
		if match := javaAfter().FindStringSubmatch(rest); match != nil {
			return "", []name{{match[1], true}}
		}
		after = strings.TrimPrefix(strings.TrimLeft(rest[1:], " "), "b")
	}
	list := findQuoted(after)
	if len(list) == 0 || list[0].begin != 0 {
		return "", nil
	}
	names = []name{{unescape(list[0].text), true}}
	if len(list) > 1 && strings.HasPrefix(after[list[0].end:], " -> ") {
		names = append([]name{{unescape(list[1].text), true}}, names...)
	}
	return op, names
}

var (
	// What was being done, between a name and the error: "x: Cannot open: …".
	actionEnd = lazyRegexp(`(?i)(?:[:;] *(?:cannot|can't|could not|couldn't|failed to|unable to) ` +
		`(?:open|create|write|mkdir|unlink|remove|rename|link|symlink|hard link|read|stat|access|change|set|utime|lock)` +
		`(?: (?:stream|target|file|directory|mode|ownership|permissions|times|to|uid|gid|[0-9]+,?|[-rwxsStT]{9}))*` +
		`| - [a-z]+ \(\d+| for (?:writing|reading|output|input|update|append)| failed)$`)
	// Between two names of one message.
	pairBetween = lazyRegexp(`^ (?:to|->|=>|as|and) $`)
)

// maxAction is the length of what actionEnd can find.
const maxAction = 100

// namesBefore reads what stands before the error. sure says that the line
// speaks of an operation on files.
func namesBefore(before, after string, sure bool) []name {
	ends := endAfter().MatchString(after)
	for range 3 {
		tail := max(0, len(before)-maxAction)
		if cut := actionEnd().FindStringIndex(before[tail:]); cut != nil {
			before = strings.TrimRight(before[:tail+cut[0]], " :;(-")
		}
	}
	list := findQuoted(before)
	var names []name
	for i := len(list) - 1; i >= 0; i-- {
		adjacent := list[i].end == len(before) && ends
		paired := i+1 < len(list) && len(names) > 0 && pairBetween().MatchString(before[list[i].end:list[i+1].begin])
		if adjacent || paired {
			names = append(names, name{list[i].text, sure})
		}
	}
	if len(names) == 0 && ends {
		names = bareNames(before, sure)
	}
	// Names in quotes elsewhere in the line count if they can be nothing else.
	for _, q := range list {
		if q.end != len(before) && strings.HasPrefix(q.text, "/") {
			names = append(names, name{q.text, false})
		}
	}
	return names[:min(len(names), maxNames)]
}

var (
	// Go: open /x: permission denied; rename /x /y: read-only file system
	goVerb = lazyRegexp(`^(?:.*: |[0-9/]{10} [0-9:.]+ )?(?:openat|open|mkdirat|mkdir|removeall|remove|unlinkat|unlink|rename|symlink|link|chmod|chown|lchown|chtimes|truncate|fork/exec|lstat|stat|readdirent|readlink|mkdirtemp|createtemp|copyfile) (.+)$`)
	// Shells, which print the bare name: bash: line 1: x: Permission denied
	shellName = lazyRegexp(`^(?:[^\s:]*/)?(?:ba|da|z|k|a|mk)?sh: (?:line \d+: |\d+: )?(?:cannot (?:create|open) )?(.+)$`)
	// Tools that do the same: tee: x: Permission denied
	toolName = lazyRegexp(`^(?:[^\s:]*/)?(?:tee|touch|mkdir|rm|rmdir|ln|chmod|chown|install|dd|truncate|mknod|mkfifo|cat|tac|head|tail|cp|mv|tar|sort|wget|sed|awk|ed|patch|strip|objcopy|ranlib|ar): (?:open failed: )?(.+)$`)
	// Java: java.io.FileNotFoundException: x (Permission denied)
	javaName = lazyRegexp(`FileNotFoundException: (.+)$`)
	// Shells that change folder or run something: nothing is written.
	builtin = lazyRegexp(`sh: (?:line \d+: |\d+: )?(?:cd|pushd|popd|source|\.|exec): `)
	// Prose: could not lock config file x; cannot open output file x
	proseName = lazyRegexp(`(?i)(?:cannot|can't|could not|couldn't|unable to|failed to) (?:[a-z]+ )+(?:in )?(\S+)$`)
)

// bareNames finds names without quotes at the end of a text. Where one begins
// is not always clear; whichever exists is the one.
func bareNames(text string, sure bool) (names []name) {
	if builtin().MatchString(text) {
		return nil
	}
	prose := proseName().FindStringSubmatch(text)
	if match := goVerb().FindStringSubmatch(text); match != nil && isGoName(match[1]) {
		sure = true
		names = goNames(match[1])
	} else if match := shellName().FindStringSubmatch(text); match != nil {
		sure = true
		names = append(names, name{match[1], true})
	} else if match := toolName().FindStringSubmatch(text); match != nil && prose == nil {
		sure = true
		names = append(names, name{match[1], true})
	} else if match := javaName().FindStringSubmatch(text); match != nil {
		names = append(names, name{match[1], true})
	}
	for i := max(0, len(programPattern().FindString(text))-1); i < len(text) && len(names) < maxNames-1; i++ {
		if text[i] == '/' && (i == 0 || strings.IndexByte(" (=:@[", text[i-1]) >= 0) && !strings.HasPrefix(text[i:], "//") {
			names = append(names, name{strings.TrimRight(text[i:], ")]"), sure})
		}
	}
	if prose != nil && len(names) == 0 {
		names = append(names, name{prose[1], false})
	}
	return names
}

// isGoName tells a name behind a verb from a sentence.
func isGoName(text string) bool {
	return text[0] == '/' || strings.Count(text, " ") < 2 && !strings.Contains(text, ": ")
}

// goNames splits what Go prints behind a verb: one name, or two with a space
// between, which may also be part of a name.
func goNames(text string) []name {
	names := []name{{text, true}}
	for i := range text {
		if text[i] == ' ' && len(names) < maxNames-2 && (text[0] != '/' || text[i+1:] != "" && text[i+1] == '/') {
			names = append(names, name{text[i+1:], true}, name{text[:i], true})
		}
	}
	return names
}

// namesInContext looks for the name in the lines before a message that has
// none, the nearest first.
func namesInContext(before, context string) (op string, names []name) {
	if strings.Trim(before, " :0123456789") != "" {
		return "", nil
	}
	lines := strings.Split(context, "\n")
	for i, seen := len(lines)-1, 0; i >= 0 && seen < 4; i-- {
		line := cleanLine(lines[i])
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "Caused by") {
			continue
		}
		seen++
		op = lineOp(line)
		for _, q := range findQuoted(line) {
			if strings.Contains(q.text, "/") {
				names = append(names, name{q.text, op != ""})
			}
		}
		if len(names) == 0 && op != "" {
			names = bareNames(line, true)
		}
		if len(names) > 0 {
			return op, names[:min(len(names), maxNames)]
		}
	}
	return "", nil
}
