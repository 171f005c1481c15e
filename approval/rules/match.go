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
	var options, operands []string
	for _, w := range rest {
		if len(w) > 1 && w[0] == '-' {
			options = append(options, w)
		} else {
			operands = append(operands, w)
		}
	}
	same := synonymsOf(name.base(), operands)
	for _, w := range options {
		result = min(result, same.find(words[1:], w))
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
