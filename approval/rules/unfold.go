package rules

import (
	"slices"
	"strings"
)

// shells are the programs that take -c and a script, or a script from their input.
var shells = set("sh bash zsh dash ksh ksh93 mksh ash yash rbash fish csh tcsh")

// scripters are commands that take a script as an argument: all their arguments
// together, or the one that scriptOf finds.
var scripters = set("eval trap alias watch source .")

// runner is a program that runs another one, which its arguments name.
type runner struct {
	runs  bool
	takes string // options that take a value in the next word
	plain string // options that take none
	skip  int    // operands before the program
	text  string // options whose value is a script
	feeds bool   // it adds arguments of its own
}

// runners are the wrappers that are unfolded. Options in neither list are read
// both ways.
var runners = map[string]runner{
	"env":     {runs: true, takes: "-u --unset -C --chdir -a --argv0", plain: "- -i --ignore-environment -0 --null -v --debug", text: "-S --split-string"},
	"sudo":    {runs: true, takes: "-u --user -g --group -C -D --chdir -h --host -p --prompt -R --chroot -r --role -t --type -T -U", plain: "-A -b -E -H -i -k -K -l -n -P -S -s -v"},
	"doas":    {runs: true, takes: "-u -C -a", plain: "-n -s -L"},
	"pkexec":  {runs: true, takes: "--user"},
	"runuser": {runs: true, takes: "-u --user -g --group -G", text: "-c --command"},
	"su":      {text: "-c --command"},
	"nice":    {runs: true, takes: "-n --adjustment"},
	"ionice":  {runs: true, takes: "-c --class -n --classdata -p", plain: "-t"},
	"nohup":   {runs: true}, "setsid": {runs: true, plain: "-c -f -w --ctty --fork --wait"},
	"timeout": {runs: true, takes: "-k --kill-after -s --signal", plain: "-f -p -v --foreground --preserve-status --verbose", skip: 1},
	"stdbuf":  {runs: true, takes: "-i --input -o --output -e --error"},
	"time":    {runs: true, takes: "-f --format -o --output", plain: "-a -p -v -q"},
	"chrt":    {runs: true, takes: "-T -P -D", plain: "-b -f -i -o -r", skip: 1},
	"taskset": {runs: true, plain: "-a", skip: 1},
	"command": {runs: true, plain: "-p -v -V"}, "builtin": {runs: true},
	"exec":     {runs: true, takes: "-a", plain: "-c -l"},
	"xargs":    {runs: true, feeds: true, takes: "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars", plain: "-0 --null -r --no-run-if-empty -t --verbose -p -x -o"},
	"parallel": {runs: true, feeds: true, takes: "-j --jobs -a --arg-file -I -n", plain: "-k -0"},
	"busybox":  {runs: true}, "toybox": {runs: true}, "unbuffer": {runs: true}, "fakeroot": {runs: true},
	"chroot": {runs: true, skip: 1}, "proot": {runs: true, takes: "-r -b -w -q", plain: "-0"},
	"setpriv": {runs: true, takes: "--reuid --regid --groups --bounding-set --inh-caps --ambient-caps", plain: "--clear-groups --no-new-privs --reset-env"},
	"unshare": {runs: true, plain: "-r -m -n -p -f -u -i -U -C --fork --map-root-user --net --mount --pid"},
	"nsenter": {runs: true, takes: "-t --target"}, "bwrap": {runs: true},
	"strace": {runs: true, takes: "-o -e -p -s -u -E", plain: "-f -ff -q -c -y"}, "ltrace": {runs: true, takes: "-o -e -p -s -u"},
	"script": {text: "-c --command"}, "flock": {runs: true, takes: "-w --timeout -E", plain: "-n -x -s -u -o", skip: 1, text: "-c --command"},
	"systemd-run": {runs: true, takes: "-u --unit -p --property -E --setenv -M", plain: "--user --scope --pty -t -q"},
	"setarch":     {runs: true, skip: 1}, "linux32": {runs: true}, "linux64": {runs: true}, "prlimit": {runs: true, takes: "-p --pid"},
	"choom": {runs: true, takes: "-n --adjust"}, "numactl": {runs: true}, "xvfb-run": {runs: true}, "valgrind": {runs: true},
	"dbus-run-session": {runs: true}, "ssh-agent": {runs: true, takes: "-a -E -O -P -t"},
	"find": {}, "git": {}, // as unfold reads them
}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(names) {
		m[name] = true
	}
	return m
}

// unfold adds what a command runs itself, as its arguments say.
func (s *script) unfold(c call, fed bool) {
	if !c.words[0].known {
		return
	}
	name, args := c.words[0].base(), c.words[1:]
	switch {
	case shells[name]:
		s.shell(args, fed)
	case name == "eval" || name == "watch":
		s.nested(joined(args))
	case name == "trap" || name == "alias":
		s.texts(args)
		if name == "alias" && len(args) > 0 {
			s.miss("it gives a command another name")
		}
	case name == "find":
		s.find(args, c.guess)
	case name == "git":
		s.git(args, c.guess)
	default:
		if r, ok := runners[name]; ok {
			s.runner(r, args, c.guess)
		}
	}
}

// shell finds the script of a shell: behind -c, or on its input.
func (s *script) shell(args []word, fed bool) {
	isText := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case !arg.known:
			s.miss("it starts a shell with what is not known beforehand")
			return
		case arg.text == "--command" && i+1 < len(args):
			s.nested(args[i+1])
			return
		case strings.HasPrefix(arg.text, "--"):
			if arg.text == "--rcfile" || arg.text == "--init-file" {
				i++
			}
		case arg.option() || strings.HasPrefix(arg.text, "+"):
			isText = isText || arg.option() && strings.Contains(arg.text, "c")
			if strings.ContainsAny(arg.text, "oO") {
				i++
			}
		case isText:
			s.nested(arg)
			return
		default:
			return // a file: it is not read
		}
	}
	if !fed {
		s.miss("it starts a shell that reads its commands elsewhere")
	}
}

// joined is arguments as eval puts them together.
func joined(args []word) word {
	all := word{known: true}
	for _, arg := range args {
		all.text += arg.text + " "
		all.known = all.known && arg.known
	}
	return all
}

// texts reads each argument as a script, and what stands behind its first =.
func (s *script) texts(args []word) {
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg.text, "="); ok {
			arg.text = value
		}
		s.nested(arg)
	}
}

// find reads the commands of -exec and its kin.
func (s *script) find(args []word, guess bool) {
	for i, arg := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, arg.text) {
			continue
		}
		end := i + 1
		for end < len(args) && args[end].text != ";" {
			end++
		}
		if end > i+1 {
			s.add(call{words: args[i+1 : end], guess: guess}, false)
		}
	}
}

// git reads aliases that are given with -c.
func (s *script) git(args []word, guess bool) {
	for i := 0; i+1 < len(args); i++ {
		name, value, ok := strings.Cut(args[i+1].text, "=")
		if args[i].text != "-c" || !ok || !strings.HasPrefix(strings.ToLower(name), "alias.") {
			continue
		}
		text := word{text: "git " + value, known: args[i+1].known}
		if command, runs := strings.CutPrefix(value, "!"); runs {
			text.text = command
		}
		s.nested(text)
	}
}

// runner adds the program that a wrapper runs: at each place where it can begin,
// given what its options may mean.
func (s *script) runner(r runner, args []word, guess bool) {
	if r.feeds {
		args = filled(args)
	}
	at := make([]bool, len(args)+2) // an option or the program can begin here
	sure := make([]bool, len(args)+2)
	at[0], sure[0] = true, !guess
	for i, arg := range args {
		if !at[i] {
			continue
		}
		step := func(n int, certain bool) {
			if next := min(i+n, len(args)); next > i {
				at[next], sure[next] = true, sure[next] || sure[i] && certain
			}
		}
		switch name, value, attached := strings.Cut(arg.text, "="); {
		case r.hasText(name) && attached:
			s.nested(joined(append([]word{{text: value, known: arg.known}}, args[i+1:]...)))
			step(1, true)
		case r.attachedText(arg.text) != "":
			s.nested(joined(append([]word{{text: r.attachedText(arg.text), known: arg.known}}, args[i+1:]...)))
			step(1, true)
		case r.hasText(arg.text) && i+1 < len(args):
			s.nested(joined(args[i+1:]))
			step(2, true)
		case arg.text == "--":
			s.program(r, args[i+1:], !sure[i])
		case listed(r.takes, arg.text):
			step(2, true)
		case arg.option() && (attached || listed(r.plain, arg.text) || listed(r.takes, arg.text[:2])):
			step(1, true)
		case arg.option() || arg.text == "-" || strings.HasPrefix(arg.text, "-") && !arg.known:
			step(1, true)
			step(2, false)
		default:
			s.program(r, args[i:], !sure[i])
			if r.skip == 0 && listed(r.text, "--command") {
				step(1, false) // as in su root -c
			}
		}
	}
}

// filled is the arguments of xargs and its kin, with what they put their input into
// not known.
func filled(args []word) []word {
	args, mark := slices.Clone(args), "{}"
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg.text, "-I"); ok {
			if value == "" && i+1 < len(args) {
				value = args[i+1].text
			}
			mark = value
			continue
		}
		if begin, _, ok := strings.Cut(arg.text, mark); ok && mark != "" {
			args[i] = word{text: begin}
		}
	}
	return args
}

// program adds what is left of a wrapper's arguments behind its options.
func (s *script) program(r runner, args []word, guess bool) {
	skip := r.skip
	for len(args) > 0 && (skip > 0 || assigns(args[0])) {
		if !assigns(args[0]) {
			skip--
		}
		args = args[1:]
	}
	if len(args) > 1 && r.hasText(args[0].text) {
		s.nested(args[1])
		return
	}
	if r.feeds {
		args = append(slices.Clip(args), word{})
	}
	if r.runs && len(args) > 0 {
		s.add(call{words: args, guess: guess}, false)
	}
}

// assigns reports whether an argument sets a variable, as for env and sudo.
func assigns(w word) bool {
	name, _, ok := strings.Cut(w.text, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// hasText reports whether an option's value is a script; -c also as -qc.
func (r runner) hasText(option string) bool {
	if listed(r.text, option) || slices.ContainsFunc(strings.Fields(r.text), func(text string) bool { return len(text) > 2 && sameLong(option, text) }) {
		return true
	}
	short := len(option) > 2 && option[0] == '-' && option[1] != '-'
	return short && listed(r.text, "-"+option[len(option)-1:])
}

// attachedText is what stands right behind an option whose value is a script, as in
// -cTEXT and -iSTEXT.
func (r runner) attachedText(arg string) string {
	if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' || r.text == "" {
		return ""
	}
	_, text, _ := strings.Cut(arg[1:], r.text[1:2])
	return text
}

// listed reports whether a list of words has one.
func listed(list, name string) bool { return name != "" && slices.Contains(strings.Fields(list), name) }
