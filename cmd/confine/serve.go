package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
)

var serveCommand = command{
	name:     "serve",
	synopsis: "[flags]",
	summary:  "Serve one editor on standard input and output.",
	details: `
  --stdio       accepted and not needed: there is no other way
  --trust-editor-options
                let the editor's initializationOptions widen as well as tighten;
                only for editors that take them from your own settings alone
  --trace FILE  append every message to FILE (mode 0600: messages hold commands)
  --log FILE    append the log, in every detail, to FILE instead of writing its
                warnings to standard error (mode 0600 as well)

Editors start this; the protocol is in docs/protocol.md. Exit status: 0 after the
editor sent shutdown, else 1; 2 for a mistake in these arguments.`,
	run:    runServe,
	failed: exitNotServed,
}

func runServe(args []string) (int, error) {
	flags := newFlags("serve")
	flags.Bool("stdio", true, "")
	trust := flags.Bool("trust-editor-options", false, "")
	trace := flags.String("trace", "", "")
	logFile := flags.String("log", "", "")
	if err := parseOnlyFlags(flags, args); err != nil {
		return 0, err
	}
	stdio := takeStdio()
	logTo, closeLog, err := openAppend(*logFile, os.Stderr)
	if err != nil {
		return 0, err
	}
	defer closeLog()
	traceTo, closeTrace, err := openAppend(*trace, nil)
	if err != nil {
		return 0, err
	}
	defer closeTrace()

	level := slog.LevelWarn // some editors show standard error as errors
	if *logFile != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: level}))
	w, err := newWiring(wiringOptions{trustEditor: *trust, watch: true, log: log, trace: traceTo, spill: true})
	if err != nil {
		return 0, err
	}
	interrupts := watchInterrupts(nil)
	defer interrupts.stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer interrupts.onFirst(cancel)()

	clean, err := w.server.Serve(ctx, stdio)
	switch sig := interrupts.signal(); {
	case sig != nil:
		log.Info("ending on a signal", "signal", sig.String())
	case err != nil:
		log.Error("serving the editor", "error", err)
	}
	if err := w.close(); err != nil {
		log.Error("cleaning up", "error", err)
	}
	if !clean {
		return exitNotServed, nil
	}
	return 0, nil
}

// stdio is the stream to the editor.
type stdio struct {
	io.ReadCloser
	out io.WriteCloser
}

func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close does not interrupt a Read of standard input; nothing can.
func (s stdio) Close() error {
	err := s.out.Close()
	s.ReadCloser.Close()
	return err
}

// takeStdio takes standard input and output away from everything else in the
// process: a stray print would corrupt the stream, so it goes to standard
// error.
func takeStdio() stdio {
	stream := stdio{os.Stdin, os.Stdout}
	os.Stdout = os.Stderr
	os.Stdin = nil // reading it fails
	return stream
}

// openAppend opens a private file to append to, or returns otherwise for an
// empty path.
func openAppend(path string, otherwise *os.File) (io.Writer, func() error, error) {
	if path == "" {
		if otherwise == nil {
			return nil, func() error { return nil }, nil
		}
		return otherwise, func() error { return nil }, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, withHint(fmt.Errorf("opening the log: %w", err), "name a file in a folder that you can write to")
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		file.Close()
		return nil, nil, withHint(fmt.Errorf("opening the log: other users have access to %q, and it would hold commands", path), "run chmod 600 on it or name a new file")
	}
	return file, file.Close, nil
}
