package rules

import (
	"slices"
	"strings"
)

// habit is what is known about a program, or about one of its subcommands.
type habit struct {
	command string // its words
	never   string // options that write a file, run a program or change something
	only    string // if set, the only options that are harmless
	most    int    // operands that are harmless: 0 for any number, none for none
	reads   func(args []string) bool
	known   bool // it is not harmless; only its options are known
}

const none = -1

// Options that many subcommands of git have: they write a file or run a program
// that the configuration names.
const gitLog = "--output --ext-diff --textconv --show-signature"

// habits are the commands that read and print only, and how each can be made to do
// more. What is not here is not harmless. Names are without a path: what else is
// called ls is not meant.
var habits = []habit{
	{command: "true"}, {command: "false"}, {command: ":"}, {command: "pwd"}, {command: "echo"}, {command: "cd", most: 1},
	{command: "ls"}, {command: "cat"}, {command: "head"}, {command: "tail"}, {command: "wc"}, {command: "nl"}, {command: "tac"}, {command: "rev"},
	{command: "cut"}, {command: "tr"}, {command: "paste"}, {command: "fold"}, {command: "comm"}, {command: "cmp"}, {command: "seq"}, {command: "sleep"},
	{command: "grep"}, {command: "egrep"}, {command: "fgrep"}, {command: "jq"}, {command: "od"}, {command: "hexdump"},
	{command: "stat"}, {command: "readlink"}, {command: "realpath"}, {command: "basename"}, {command: "dirname"}, {command: "df"}, {command: "du"},
	{command: "id"}, {command: "whoami"}, {command: "groups"}, {command: "uname"}, {command: "nproc"}, {command: "uptime"}, {command: "free"}, {command: "ps"},
	{command: "printenv"}, {command: "which"}, {command: "type"}, {command: "command -v"},
	{command: "md5sum"}, {command: "sha1sum"}, {command: "sha256sum"}, {command: "sha512sum"}, {command: "cksum"},
	{command: "diff", never: "-l --paginate"}, // runs pr
	{command: "uniq", most: 1},                // the second operand is written
	{command: "file", never: "-C --compile -z --uncompress -Z --uncompress-noreport"},
	{command: "tree", never: "-o -R --output"},
	{command: "sort", never: "-o --output -T --temporary-directory --compress-program"},
	{command: "rg", never: "--pre --pre-glob --hostname-bin -z --search-zip"},
	{command: "fd", never: "-x --exec -X --exec-batch -l --list-details"},
	{command: "find", never: "-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf"},
	{command: "date", reads: isFormat},
	{command: "sed", reads: printsOnly},

	{command: "git status"}, {command: "git rev-parse"}, {command: "git ls-files"}, {command: "git ls-tree"}, {command: "git blame"}, {command: "git describe"},
	{command: "git merge-base"}, {command: "git name-rev"}, {command: "git show-ref"}, {command: "git check-ignore"}, {command: "git count-objects"},
	{command: "git --version"}, {command: "git version"}, {command: "git worktree list"},
	{command: "git diff", never: gitLog}, {command: "git diff-tree", never: gitLog}, {command: "git range-diff", never: gitLog},
	{command: "git log", never: gitLog}, {command: "git show", never: gitLog}, {command: "git whatchanged", never: gitLog},
	{command: "git rev-list", never: gitLog}, {command: "git shortlog", never: gitLog}, {command: "git for-each-ref", reads: verifiesNothing},
	{command: "git stash list", never: gitLog}, {command: "git stash show", never: gitLog},
	{command: "git grep", never: "-O --open-files-in-pager --textconv"},
	{command: "git cat-file", never: "--textconv --filters"},
	{command: "git branch", only: "-a -r -v -vv -l --all --remotes --verbose --list --show-current", most: none},
	{command: "git remote", only: "-v --verbose", most: none},
	{command: "git tag", only: "-l --list", most: none},
	{command: "git reflog", only: "--", most: none},

	{command: "tar", known: true, never: "--to-command --checkpoint-action -I --use-compress-program --rsh-command --rmt-command -F --info-script --new-volume-script"},
	{command: "rsync", known: true, never: "-e --rsh --rsync-path"},
	{command: "go", known: true, never: "-exec -toolexec -vettool"}, {command: "cargo", known: true, never: "--config"},
	{command: "ssh", known: true, never: "-o -F"}, {command: "scp", known: true, never: "-o -F -S"}, {command: "sftp", known: true, never: "-o -F -S"},
	{command: "curl", known: true, never: "-o -O -J -K -D -c --output --output-dir --remote-name --remote-name-all --config --dump-header --cookie-jar " +
		"--trace --trace-ascii --stderr --libcurl --etag-save --hsts --alt-svc"},
	{command: "wget", known: true, never: "-e --execute --config --use-askpass"}, {command: "man", known: true, never: "-P --pager -H --html -C --config-file"},
	{command: "git fetch", known: true, never: "--upload-pack"}, {command: "git pull", known: true, never: "--upload-pack"},
	{command: "git push", known: true, never: "--receive-pack --exec"}, {command: "git clone", known: true, never: "-u --upload-pack -c --config --template"},
	{command: "git ls-remote", known: true, never: "--upload-pack --exec"}, {command: "git archive", known: true, never: "-o --output --exec --remote"},
	{command: "git rebase", known: true, never: "-x --exec"}, {command: "git submodule foreach", known: true, most: none},
	{command: "git submodule -q", known: true, most: none}, {command: "git submodule --quiet", known: true, most: none}, {command: "git submodule --cached", known: true, most: none},
	{command: "git bisect run", known: true, most: none}, {command: "git difftool", known: true, never: "-x --extcmd"},
}

// harmless reports whether a command of literal words only reads and prints.
func harmless(words []string) bool {
	if words[0] == "git" {
		if plain := gitGlobals(words); plain == nil || slices.Contains(words[:len(words)-len(plain)+1], "-C") {
			return false // see moves
		}
	}
	h, args := habitOf(words)
	return h != nil && !h.known && h.quiet(args) && h.within(args)
}

// dangerous reports whether a command that begins with n words of a rule goes on
// with what makes the program do something else. What the rule itself spells is
// meant.
func dangerous(words []string, n int) bool {
	if len(words) == n {
		return false
	}
	words = slices.Clone(words)
	words[0] = word{text: words[0]}.base() // a rule can name a path
	if words[0] == "tar" && !strings.HasPrefix(words[1], "-") {
		words[1] = "-" + words[1] // its first argument is options, also without a dash
	}
	if words[0] == "git" && gitGlobals(words) == nil {
		return true
	}
	h, args := habitOf(words)
	if h == nil {
		return false
	}
	if h.reads != nil {
		return !h.reads(args)
	}
	if beyond := words[n:]; len(beyond) < len(args) {
		args = beyond
	}
	return !h.quiet(args) || h.known && h.most == none && len(args) > 0
}

// habitOf finds what is known about a command, the most exact, and its arguments.
func habitOf(words []string) (found *habit, args []string) {
	if words[0] == "git" {
		if words = gitGlobals(words); words == nil {
			return nil, nil
		}
	}
	longest := 0
	for i := range habits {
		name := strings.Fields(habits[i].command)
		if len(name) > longest && len(words) >= len(name) && slices.Equal(words[:len(name)], name) {
			found, longest = &habits[i], len(name)
		}
	}
	return found, words[longest:]
}

// gitGlobals takes away the options before git's subcommand that change nothing
// but where it looks; nil if there are others.
func gitGlobals(words []string) []string {
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "--version" {
		switch {
		case rest[0] == "--no-pager" || rest[0] == "-P" || rest[0] == "--no-optional-locks":
			rest = rest[1:]
		case rest[0] == "-C" && len(rest) > 1:
			rest = rest[2:]
		default:
			return nil
		}
	}
	return append([]string{"git"}, rest...)
}

// quiet reports whether no argument is an option that does more, in any spelling:
// shortened, with a value, or among other letters. Values that look like one count.
func (h *habit) quiet(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(h.command, "git ") && (arg == "--help" || verifies(arg)) {
			return false
		}
		for _, option := range strings.Fields(h.never) {
			if means(arg, option) {
				return false
			}
		}
	}
	return true
}

// verifies reports whether a format makes git run the program that verifies
// signatures. Between % and G can stand what says how an empty value is shown.
func verifies(format string) bool {
	plain := strings.NewReplacer("%+", "%", "%-", "%", "% ", "%", "%(*", "%(").Replace(format)
	return strings.Contains(plain, "%G") || strings.Contains(plain, "%(signature")
}

// verifiesNothing reports whether git for-each-ref neither shows signatures nor
// sorts by them.
func verifiesNothing(args []string) bool {
	return !slices.ContainsFunc(args, func(arg string) bool { return arg == "--help" || strings.Contains(arg, "signature") })
}

// means reports whether an argument can be an option, by its beginning.
func means(arg, option string) bool {
	name, _, _ := strings.Cut(arg, "=")
	switch {
	case len(name) < 2 || name[0] != '-':
		return false
	case strings.HasPrefix(option, "--"):
		return len(name) > 2 && strings.HasPrefix(option, name)
	case len(option) > 2: // of find and go
		return name == option || name == "-"+option
	}
	return arg[1] != '-' && strings.Contains(arg[1:], option[1:])
}

// within reports whether the arguments are as few, and of the kind, that the
// program only reads.
func (h *habit) within(args []string) bool {
	operands, ended := 0, false
	for _, arg := range args {
		switch {
		case ended || arg == "-" || !strings.HasPrefix(arg, "-"):
			operands++
		case h.only != "" && !listed(h.only, arg):
			return false
		case arg == "--":
			ended = true
		}
	}
	if h.most != 0 && operands > max(0, h.most) {
		return false
	}
	return h.reads == nil || h.reads(args)
}

// isFormat reports whether the arguments of date print it and set nothing.
func isFormat(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "+") && !listed("-u --utc -R", arg) && !strings.HasPrefix(arg, "-I") {
			return false
		}
	}
	return true
}

// printsOnly reports whether sed's script, its first operand, is nothing but line
// numbers and the commands p, d, q and =: others can write and run.
func printsOnly(args []string) bool {
	for i, arg := range args {
		switch {
		case listed("--quiet --silent --regexp-extended --", arg):
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			if strings.Trim(arg[1:], "nErsuz") != "" {
				return false
			}
		default:
			files := args[i+1:]
			return strings.Trim(arg, "0123456789$,;pdq= ") == "" &&
				!slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "-") })
		}
	}
	return false
}
