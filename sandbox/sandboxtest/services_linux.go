package sandboxtest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// services are servers on the host that no command may reach. Each notes the
// tokens it was sent; stream servers and UDP answer, so that who got an answer
// knows that the token was noted.
type services struct {
	mu    sync.Mutex // guards heard
	heard []string

	marked  chan string // what was sent to the datagram log as a mark; never closed
	address stage       // holds addresses only
}

// markPrefix begins what the suite itself sends.
const markPrefix = "mark "

func (v *services) stage() stage { return v.address }

func (v *services) open(t *testing.T, p *place) {
	v.marked = make(chan string, 64)
	s := &v.address
	s.RuntimeSocket, s.RuntimeLog = filepath.Join(p.runtime, "bus"), filepath.Join(p.runtime, "log")
	s.RuntimePipe, s.RuntimeFile = filepath.Join(p.runtime, "pipe"), filepath.Join(p.runtime, "file")
	s.TempSocket = filepath.Join(p.temp, "agent")
	s.HomeSocket, s.HomePipe = filepath.Join(p.home, "socket"), filepath.Join(p.home, "pipe")
	s.CacheSocket = filepath.Join(p.folder(t, filepath.Join(p.home, ".cache")), "socket")
	s.Abstract = fmt.Sprintf("@confine-suite-%d", os.Getpid())
	s.TCP = v.listen(t, "tcp", "127.0.0.1:0")
	for _, path := range []string{s.RuntimeSocket, s.TempSocket, s.HomeSocket, s.CacheSocket, s.Abstract} {
		v.listen(t, "unix", path)
	}
	s.HomeUnnamed = filepath.Join(p.home, "unnamed")
	home, err := os.Open(p.home)
	if err != nil {
		t.Fatal(err)
	}
	v.listen(t, "unix", fmt.Sprintf("/proc/self/fd/%d/unnamed", home.Fd()))
	home.Close()
	s.UDP = v.receive(t, "udp", "127.0.0.1:0")
	v.receive(t, "unixgram", s.RuntimeLog)
	for _, path := range []string{s.RuntimePipe, s.HomePipe} {
		v.pipe(t, path)
	}
	if err := os.WriteFile(s.RuntimeFile, []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (v *services) note(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = append(v.heard, token)
}

// heardOf reports whether a token reached any of the servers that answer.
func (v *services) heardOf(token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.heard, token)
}

// listen starts a stream server, which reads one line and answers.
func (v *services) listen(t *testing.T, network, address string) string {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			serving.Go(func() {
				defer c.Close()
				if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					v.note(line[:len(line)-1])
					c.Write([]byte("heard\n"))
				}
			})
		}
	})
	return l.Addr().String()
}

// receive starts a datagram server.
func (v *services) receive(t *testing.T, network, address string) string {
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { c.Close(); serving.Wait() })
	serving.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			text := string(buffer[:n])
			v.note(text)
			if len(text) > len(markPrefix) && text[:len(markPrefix)] == markPrefix {
				v.marked <- text
			}
			if network == "udp" {
				c.WriteTo([]byte("heard\n"), from)
			}
		}
	})
	return c.LocalAddr().String()
}

// pipe makes a FIFO that somebody reads.
func (v *services) pipe(t *testing.T, path string) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}

// heardBy says that a server that answers heard of the scene's token.
func heardBy(s *scene) string {
	if s.place.services.heardOf(s.stage.Token) {
		return "a service of the host was reached"
	}
	return ""
}

// heardByLog says that the datagram socket heard of the token, after what the
// suite now sends itself has come. Only one row writes to that socket.
func heardByLog(s *scene) string {
	v := &s.place.services
	c, err := net.Dial("unixgram", s.stage.RuntimeLog)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	mark := markPrefix + s.stage.Token
	if _, err := c.Write([]byte(mark)); err != nil {
		s.t.Fatal(err)
	}
	for <-v.marked != mark {
	}
	return heardBy(s)
}

// heardByPipe looks for anything in a FIFO that only one row writes to.
func heardByPipe(path func(stage) string) func(*scene) string {
	return func(s *scene) string {
		fd, err := unix.Open(path(s.stage), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		defer unix.Close(fd)
		buffer := make([]byte, 4096)
		if n, _ := unix.Read(fd, buffer); n > 0 {
			return fmt.Sprintf("a FIFO of the host holds %q", buffer[:n])
		}
		return ""
	}
}
