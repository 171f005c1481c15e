package rules

import (
	"slices"
	"strings"
)

// answer says whether a command is one that a rule means.
type answer int

const (
	no answer = iota
	possible
	certain
)

// best is the strongest answer that one of the calls gives to a rule which denies
// or asks.
func (r Rule) best(calls []call) answer {
	best := no
	for _, c := range calls {
		found := r.meets(c.words)
		if c.guess {
			found = min(found, possible)
		}
		best = max(best, found)
	}
	return best
}

// meets compares a rule that denies or asks with a command: by the program's base
// name, with options in any place between the words.
func (r Rule) meets(words []word) answer {
	name, rest := word{text: r.Command[0], known: true}, r.Command[1:]
	first := words[0]
	switch {
	case first.known && first.base() != name.base():
		return no
	case !first.known:
		if first.couldBeProgram(name.base()) {
			return possible
		}
		return no
	}
	result := certain
	var operands []string
	for _, w := range rest {
		if len(w) > 1 && w[0] == '-' {
			result = min(result, hasOption(words[1:], w))
		} else {
			operands = append(operands, w)
		}
	}
	return min(result, hasOperands(words[1:], operands))
}

// couldBeProgram reports whether a first word of which only the beginning is known
// could name a program.
func (w word) couldBeProgram(base string) bool {
	dir, begin := "", strings.ToLower(w.text)
	if at := strings.LastIndexByte(begin, '/'); at >= 0 {
		dir, begin = begin[:at+1], begin[at+1:]
	}
	return dir != "" || strings.HasPrefix(base, begin)
}

// couldBe reports whether a word that is not known could be text.
func (w word) couldBe(text string) bool {
	return !w.known && (!w.single || strings.HasPrefix(text, w.text))
}

// hasOperands looks for words in this order, with only options, which may take a
// value or not, before each.
func hasOperands(args []word, wanted []string) answer {
	result := certain
	starts := []bool{true} // where the next wanted word may be looked for
	for _, text := range wanted {
		starts = append(starts, make([]bool, len(args)+2-len(starts))...)
		next, found := make([]bool, len(args)+2), no
		for i, arg := range args {
			switch {
			case !starts[i]:
				continue
			case arg.known && arg.text == text:
				next[i+1], found = true, certain
			case arg.couldBe(text):
				found = max(found, possible)
			}
			if arg.option() {
				starts[i+1], starts[i+2] = true, true
			}
		}
		if found != certain {
			return min(result, found)
		}
		starts = next
	}
	return result
}

// hasOption looks for an option anywhere among the arguments: --force also as
// --force=x and shortened, -rf also as -r -f and among others.
func hasOption(args []word, option string) answer {
	letters, short := option[1:], len(option) <= 4 && option[1] != '-'
	found := no
	for _, arg := range args {
		switch {
		case !arg.known && (arg.couldBe(option) || arg.option()):
			found = max(found, possible)
		case arg.text == option, !short && sameLong(arg.text, option):
			return certain
		case short && arg.option() && arg.text[1] != '-':
			letters = strings.Map(func(r rune) rune {
				if strings.ContainsRune(arg.text, r) {
					return -1
				}
				return r
			}, letters)
		}
	}
	if short && letters == "" {
		return certain
	}
	return found
}

// sameLong reports whether an argument is a long option, perhaps shortened or with
// a value.
func sameLong(arg, option string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > 3 && strings.HasPrefix(name, "--") && strings.HasPrefix(option, name)
}

// covers reports whether an allow rule is about a command of literal words: it
// begins with the words of the rule, spelled like them, and goes on without what
// makes the program run others or write, as far as that is known here.
func (r Rule) covers(words []string) bool {
	n := len(r.Command)
	if len(words) < n || !slices.Equal(words[:n], r.Command) {
		return false
	}
	if name := (word{text: words[0]}).base(); runners[name].runs || shells[name] || scripters[name] {
		return len(words) == n // what follows can be any program
	}
	return !dangerous(words, n)
}
