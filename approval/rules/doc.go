// Package rules parses shell commands and matches command rules: which commands
// need no question, which always need one, and which are refused. It is pure.
//
// Rules are for comfort; the sandbox is the boundary. A command can do what a rule
// denies in ways that no parser sees (a script, a program of its own), so a deny
// rule stops accidents and says what is meant. The two directions therefore err
// differently:
//
//   - Deny and Ask look at every spelling that the grammar can unfold: quotes,
//     substitutions, functions, wrappers such as env and xargs, bash -c. What could be
//     such a command and cannot be read is asked.
//   - Allow needs every command of the script to be literal words, with no expansion,
//     assignment, function or redirection that writes, and each one covered.
package rules
