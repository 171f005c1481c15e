package rules

import (
	"slices"
	"strings"
)

// synonyms are names of one option each, apart by blanks, of programs that people deny
// with options. A program is one word, or with it the operand that says what it does.
// A name without a dash is the beginning of an operand that means the same.
var synonyms = map[string][]string{
	"rm":    {"-r -R --recursive", "-f --force", "-i --interactive"},
	"cp":    {"-r -R --recursive", "-f --force"},
	"mv":    {"-f --force"},
	"ln":    {"-s --symbolic", "-f --force"},
	"chmod": {"-R --recursive"}, "chown": {"-R --recursive"}, "chgrp": {"-R --recursive"},
	"sed":   {"-i --in-place"},
	"tar":   {"-x --extract --get", "-c --create"},
	"rsync": {"-r --recursive", "-a --archive", "-e --rsh"},

	"git push":            {"-f --force +", "-d --delete :", "-n --dry-run"},
	"git fetch":           {"-f --force +"},
	"git pull":            {"-f --force +"},
	"git clean":           {"-f --force"},
	"git add":             {"-A --all", "-f --force"},
	"git branch":          {"-d --delete", "-f --force", "-m --move"},
	"git checkout":        {"-f --force"},
	"git switch":          {"-f --force --discard-changes"},
	"git commit":          {"-n --no-verify", "-a --all"},
	"git rebase":          {"-i --interactive"},
	"git tag":             {"-d --delete", "-f --force"},
	"git worktree remove": {"-f --force"},

	"curl": {"-X --request", "-d --data", "-F --form", "-T --upload-file", "-k --insecure", "-o --output", "-O --remote-name", "-K --config", "-x --proxy"},
	"wget": {"-O --output-document"},
	"npm":  {"-g --global", "-f --force"}, "pnpm": {"-g --global", "-f --force"},
	"docker rm": {"-f --force"}, "docker rmi": {"-f --force"}, "docker run": {"-v --volume", "-p --publish"}, "docker prune": {"-a --all", "-f --force"},
	"podman rm": {"-f --force"}, "podman rmi": {"-f --force"}, "podman run": {"-v --volume", "-p --publish"}, "podman prune": {"-a --all", "-f --force"},
}

// same are the synonyms that hold for one rule.
type same [][]string

// synonymsOf are those of a program, and of what the operands of a rule make of it.
func synonymsOf(program string, operands []string) (all same) {
	for name, options := range synonyms {
		words := strings.Fields(name)
		if words[0] != program || slices.ContainsFunc(words[1:], func(w string) bool { return !slices.Contains(operands, w) }) {
			continue
		}
		for _, names := range options {
			all = append(all, strings.Fields(names))
		}
	}
	return all
}

// names are all names of an option.
func (s same) names(option string) []string {
	for _, group := range s {
		if slices.Contains(group, option) {
			return group
		}
	}
	return []string{option}
}

// find looks for an option anywhere among the arguments, by each of its names. Letters
// behind one dash are options of their own, in any order and among others.
func (s same) find(args []word, option string) answer {
	if !isShort(option) {
		return hasAny(args, s.names(option))
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.known && a.text == option }) {
		return certain
	}
	result := certain
	for _, letter := range option[1:] {
		result = min(result, hasAny(args, s.names("-"+string(letter))))
	}
	return result
}

// isShort tells -rf from --recursive and from -delete.
func isShort(option string) bool { return len(option) <= 4 && option[1] != '-' }

// hasAny looks for one of the names of an option: --force also as --force=x and
// shortened, -r also among others, as in -vr.
func hasAny(args []word, names []string) answer {
	found := no
	for _, arg := range args {
		for _, name := range names {
			switch {
			case name[0] != '-' && strings.HasPrefix(arg.text, name):
				return certain
			case !arg.known && (arg.couldBe(name) || arg.option()):
				found = max(found, possible)
			case !arg.known:
			case isOption(arg, name):
				return certain
			}
		}
	}
	return found
}

// isOption reports whether an argument is, or has in it, an option of this name.
func isOption(arg word, name string) bool {
	if len(name) == 2 && arg.option() && arg.text[1] != '-' {
		return strings.Contains(arg.text[1:], name[1:])
	}
	return arg.text == name || sameLong(arg.text, name)
}

// sameLong reports whether an argument is a long option, perhaps shortened or with
// a value.
func sameLong(arg, option string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > 3 && strings.HasPrefix(name, "--") && strings.HasPrefix(option, name)
}
