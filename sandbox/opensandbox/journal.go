package opensandbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// journal notes sandboxes before they are made and until they are deleted, so that
// the next server deletes what a killed one left. It is one file per provider, locked
// while the provider lives; it is made with the first sandbox.
//
// Its lines: "service LIFETIME URL", "+ TOKEN" before a sandbox is asked for,
// "= TOKEN ID" when it was made, "- TOKEN" when it is gone.
type journal struct {
	dir      string // empty: nothing is noted
	url      string
	lifetime time.Duration

	mu   sync.Mutex // guards what follows
	file *os.File   // nil until there is something to note
	path string
	open map[string]bool // tokens of what may be there
}

const (
	journalFolder = "opensandbox"
	newSuffix     = ".new" // of a file that nobody holds yet
)

func newJournal(state, url string, lifetime time.Duration) *journal {
	j := &journal{url: url, lifetime: lifetime, open: map[string]bool{}}
	if state != "" {
		j.dir = filepath.Join(state, journalFolder)
	}
	return j
}

// begun notes that a sandbox is about to be asked for. It is on the disk when it
// returns.
func (j *journal) begun(token string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir != "" && j.file == nil {
		if err := j.create(); err != nil {
			return err
		}
	}
	if err := j.write("+ " + token); err != nil {
		return err
	}
	j.open[token] = true
	return nil
}

// known and ended need not succeed: a sandbox is found by its token, and one that is
// gone is no harm.
func (j *journal) known(token, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.write("= " + token + " " + id)
}

func (j *journal) ended(token string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, token)
	_ = j.write("- " + token)
}

// renewed notes that the lifetime of what is there begins anew.
func (j *journal) renewed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		now := time.Now()
		_ = os.Chtimes(j.path, now, now)
	}
}

// left lists the tokens of what may be there.
func (j *journal) left() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var tokens []string
	for token := range j.open {
		tokens = append(tokens, token)
	}
	return tokens
}

// close lets go of the file, which is removed if nothing is left.
func (j *journal) close() (left int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		if len(j.open) == 0 {
			_ = os.Remove(j.path)
		}
		j.file.Close()
		j.file = nil
	}
	return len(j.open)
}

// create makes the file. It has its name only when it is locked, since one that is
// not locked is swept.
func (j *journal) create() error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(j.dir, strings.ToLower(rand.Text()))
	file, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_ = lock(file) // where files cannot be locked nothing is swept either
	if _, err = fmt.Fprintf(file, "service %d %s\n", int64(j.lifetime/time.Second), j.url); err == nil {
		err = os.Rename(path+newSuffix, path)
	}
	if err != nil {
		file.Close()
		return err
	}
	j.file, j.path = file, path
	return nil
}

func (j *journal) write(line string) error {
	if j.file == nil {
		return nil
	}
	if _, err := j.file.WriteString(line + "\n"); err != nil {
		return err
	}
	return j.file.Sync()
}

// remains is what a file of a dead provider says.
type remains struct {
	url      string
	lifetime time.Duration
	open     map[string]string // ids by token; empty if not known
}

func readRemains(file *os.File) remains {
	r := remains{open: map[string]string{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 3 && words[0] == "service":
			seconds, _ := strconv.ParseInt(words[1], 10, 64)
			r.lifetime, r.url = time.Duration(seconds)*time.Second, words[2]
		case len(words) == 2 && words[0] == "+":
			r.open[words[1]] = ""
		case len(words) == 3 && words[0] == "=" && plainID.MatchString(words[2]):
			r.open[words[1]] = words[2]
		case len(words) == 2 && words[0] == "-":
			delete(r.open, words[1])
		}
	}
	return r
}

// sweep deletes, once and in the background, what dead providers left at this service.
func (p *Provider) sweep() {
	p.swept.Do(func() {
		if p.journal.dir != "" {
			p.working.Go(func() { p.sweepNow(p.ctx) })
		}
	})
}

func (p *Provider) sweepNow(ctx context.Context) {
	entries, err := os.ReadDir(p.journal.dir)
	if err != nil {
		return // nothing was ever noted
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return
		}
		if !strings.HasSuffix(entry.Name(), newSuffix) {
			p.sweepFile(ctx, filepath.Join(p.journal.dir, entry.Name()))
		}
	}
}

func (p *Provider) sweepFile(ctx context.Context, path string) {
	file, err := os.OpenFile(path, os.O_RDWR|openFlags, 0)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return // none of ours, and what is no file may never end
	}
	if lock(file) != nil {
		return // its provider lives
	}
	found := readRemains(file)
	expired := found.lifetime > 0 && time.Since(info.ModTime()) > found.lifetime+time.Minute
	if !expired && !sameService(found.url, p.journal.url) {
		return // another service's
	}
	for token, id := range found.open {
		var f *failure
		switch {
		case expired && !sameService(found.url, p.journal.url):
		case id != "":
			f = p.lifecycle.delete(ctx, id)
		default:
			f = p.lifecycle.deleteLabelled(ctx, token)
		}
		if f != nil && !expired {
			p.config.Log.Warn("a remote sandbox that an earlier confine left could not be deleted", "reason", f.text)
			return
		}
	}
	_ = os.Remove(path)
}

func sameService(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	return err == nil && err2 == nil && strings.EqualFold(x.Host, y.Host) && x.Scheme == y.Scheme && x.Path == y.Path
}

// settle tries once more to delete what may be left.
func (p *Provider) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), p.config.Patience)
	defer cancel()
	for _, token := range p.journal.left() {
		if p.lifecycle.deleteLabelled(ctx, token) == nil {
			p.journal.ended(token)
		}
	}
}
