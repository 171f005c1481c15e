// Package day greets.
package day

import "example.test/words"

// Greeting greets name.
func Greeting(name string) string { return words.Hello + " " + name }
