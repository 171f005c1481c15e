package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// interrupts watches the signals that ask confine to end. The first one lets
// what runs end in order; the second one ends confine at once, and its guardian
// ends the rest.
type interrupts struct {
	arrived context.Context // ends at the first signal, or at stop
	first   os.Signal       // set before arrived ends; nil if stop ended it
	signals chan os.Signal
	atOnce  func()        // called before the second signal ends confine; nil for nothing
	quit    chan struct{} // closed by stop
	watcher sync.WaitGroup
}

// watchInterrupts begins watching. Signals that confine was started to ignore,
// as under nohup, stay ignored. atOnce, unless it is nil, is called before the second
// signal ends confine.
func watchInterrupts(atOnce func()) *interrupts {
	arrived, cancel := context.WithCancel(context.Background())
	i := &interrupts{
		arrived: arrived,
		signals: make(chan os.Signal, 2),
		atOnce:  atOnce,
		quit:    make(chan struct{}),
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(i.signals, sig)
		}
	}
	i.watcher.Go(func() { i.watch(cancel) })
	return i
}

func (i *interrupts) watch(cancel context.CancelFunc) {
	defer cancel()
	for {
		select {
		case <-i.quit:
			return
		case sig := <-i.signals:
			if i.first != nil {
				if i.atOnce != nil {
					i.atOnce()
				}
				os.Exit(interruptStatus(sig))
			}
			i.first = sig
			cancel()
		}
	}
}

// stop ends watching: signals have their default effect again. What onFirst
// registered must have been taken back before.
func (i *interrupts) stop() {
	signal.Stop(i.signals)
	close(i.quit)
	i.watcher.Wait()
}

// onFirst calls f, on a goroutine of its own, when the first signal comes, or
// now if it came already. The returned function takes that back.
func (i *interrupts) onFirst(f func()) (takeBack func() bool) {
	return context.AfterFunc(i.arrived, f)
}

// signal is the first signal, or nil if none came.
func (i *interrupts) signal() os.Signal {
	if i.arrived.Err() == nil {
		return nil
	}
	return i.first
}

// interruptStatus is the exit status of a program that a signal ended.
func interruptStatus(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return exitSignalled + int(number)
	}
	return exitSignalled + int(syscall.SIGINT)
}

// catchBrokenPipes makes writing to a closed standard output an error instead
// of the sudden death of the process, which would skip all cleaning up.
// Ignoring the signal would do so as well, and commands would inherit that.
func catchBrokenPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// signalNumber is the number of a signal's name, as results carry it. Names
// that are not known here count as KILL, the one that leaves no doubt.
func signalNumber(name string) int {
	if number, ok := signalNumbers[name]; ok {
		return int(number)
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(name, "SIG")); err == nil && 0 < number && number < 128 {
		return number // a real-time signal
	}
	return int(syscall.SIGKILL)
}
