package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/confine-dev/confine/sandbox"
)

// Wrapper is what confines commands on this system.
type Wrapper = Front

// Child runs a hidden subcommand and ends the process, if args (os.Args) names one.
// It must come first in main, and in TestMain of tests that start commands.
func Child(args []string) {
	if len(args) < 2 {
		return
	}
	switch args[1] {
	case startName:
		os.Exit(startInside(args[2:]))
	case attemptName:
		os.Exit(attemptAll(args[2:]))
	case keeperName:
		os.Exit(keep(args[2:]))
	}
}

// confiner is what confines the commands of an engine.
type confiner struct {
	behind *behind // nil if nothing does
	home   *home
	keeper *keeper
}

// newConfiner makes the server's folder; without a wrapper nothing is confined.
func newConfiner(w Wrapper, state string) (*confiner, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil, fmt.Errorf("finding confine's own program: %w", err)
	}
	sweep(state)
	home, err := newHome(state)
	if err != nil {
		return nil, err
	}
	c := &confiner{home: home, keeper: newKeeper(self, home.dir)}
	if w != nil {
		c.behind = newBehind(w, self, state, home.sessions(), c.keeper)
	}
	return c, nil
}

// keep makes sure that a command which nothing confines ends with the server.
func (c *confiner) keep(group int) error { return c.keeper.add(group) }

// forget is called when it has ended.
func (c *confiner) forget(group int) { c.keeper.remove(group) }

// sweep removes the folders that servers left which were killed.
func sweep(state string) {
	for dir, lock := range deadServers(state) {
		removeTree(dir)
		lock.Close()
	}
}

func (c *confiner) spill() string { return c.home.spill() }

func (c *confiner) name() string {
	if c.behind == nil {
		return sandbox.ProviderNone
	}
	return c.behind.front.Name()
}

func (c *confiner) probe(ctx context.Context) sandbox.Report {
	if c.behind == nil {
		return unconfinedReport
	}
	return c.behind.report(ctx)
}

// begin is not called without a wrapper.
func (c *confiner) begin(ctx context.Context, spec sandbox.Spec, program resolved) (*run, error) {
	return c.behind.begin(ctx, spec, program)
}

func (c *confiner) closeSession(name string) {
	if c.behind != nil {
		c.behind.closeSession(name)
	}
}

func (c *confiner) close() error {
	c.keeper.close()
	return c.home.remove()
}
