package observe

import (
	"archive/tar"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/confine-dev/confine/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// manyFiles is how many small files are unpacked or created.
const manyFiles = 20000

// BenchmarkUnpacking compares unpacking many small files into a file system in
// memory with and without an observer. The metric "ratio" is the time with over the
// time without, of the fastest rounds; "cpu-ratio" is the same for the time that
// processors spent on the command and on the observer, which other work on the
// machine disturbs less.
func BenchmarkUnpacking(b *testing.B) {
	program, err := exec.LookPath("tar")
	if err != nil {
		b.Skip(err)
	}
	compare(b, func(memory string) []string {
		archive := filepath.Join(memory, "archive.tar")
		if err := writeArchive(archive); err != nil {
			b.Fatal(err)
		}
		return []string{program, "xf", archive}
	})
}

// BenchmarkCreating does the same with a loop that only creates files.
func BenchmarkCreating(b *testing.B) {
	for _, action := range []string{"many", "manyrelative", "manyover"} {
		b.Run(action, func(b *testing.B) {
			compare(b, func(string) []string { return []string{"/proc/self/exe", action + " " + fmt.Sprint(manyFiles)} })
		})
	}
}

func compare(b *testing.B, command func(memory string) []string) {
	for _, view := range []bool{true, false} {
		b.Run(map[bool]string{true: "view", false: "landlock"}[view], func(b *testing.B) {
			memory, err := os.MkdirTemp("/dev/shm", "observe")
			if err != nil {
				b.Skip(err)
			}
			defer os.RemoveAll(memory)
			argv := command(memory)
			without, with := cost{1 << 62, 1 << 62}, cost{1 << 62, 1 << 62}
			for b.Loop() {
				without.least(measure(b, view, memory, true, argv))
				with.least(measure(b, view, memory, false, argv))
			}
			b.ReportMetric(float64(with.wall)/float64(without.wall), "ratio")
			b.ReportMetric(float64(with.cpu)/float64(without.cpu), "cpu-ratio")
			b.ReportMetric(float64(with.wall-without.wall)/manyFiles, "ns-more/file")
			b.ReportMetric(float64(without.wall)/manyFiles, "ns/file")
		})
	}
}

// cost is what running a command took.
type cost struct{ wall, cpu time.Duration }

func (c *cost) least(o cost) { c.wall, c.cpu = min(c.wall, o.wall), min(c.cpu, o.cpu) }

// measure runs a command in a new folder.
func measure(b *testing.B, view bool, memory string, unwatched bool, argv []string) cost {
	s := benchScene(b, view, memory)
	defer os.RemoveAll(s.work)
	s.orders.Unwatched = unwatched
	begin, before := time.Now(), spent(b)
	c := s.start(argv...)
	err := c.cmd.Wait()
	took := cost{wall: time.Since(begin)}
	if !unwatched {
		if observed := c.end(); len(observed.Denials) > 0 {
			b.Fatal(observed.Denials[0])
		}
	}
	took.cpu = spent(b) - before
	if err != nil {
		b.Fatalf("%v: %s", err, c.stderr.String())
	}
	return took
}

// spent is the time that processors spent on this process and its children.
func spent(b *testing.B) (total time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

func benchScene(b *testing.B, view bool, memory string) *scene {
	work := filepath.Join(memory, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		b.Fatal(err)
	}
	return &scene{t: b, view: view, work: work, orders: orders{Namespaces: view, Writable: []string{work}, Dir: work}}
}

func writeArchive(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := tar.NewWriter(file)
	for i := range manyFiles {
		header := tar.Header{Name: fmt.Sprintf("d%d/f%d", i/200, i), Mode: 0o644, Size: 5, Uid: os.Getuid(), Gid: os.Getgid(), ModTime: time.Unix(1e9, 0)}
		if i%200 == 0 {
			if err := out.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/", i/200), Typeflag: tar.TypeDir, Mode: 0o755, Uid: os.Getuid(), Gid: os.Getgid(), ModTime: time.Unix(1e9, 0)}); err != nil {
				return err
			}
		}
		if err := out.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := out.Write([]byte("small")); err != nil {
			return err
		}
	}
	return out.Close()
}

// createMany creates files as fast as it can.
func createMany(folder string, count string, flags int) error {
	for i := range number(count) {
		fd, err := unix.Open(fmt.Sprintf("%s%d", folder, i), flags, 0o644)
		if err != nil {
			return err
		}
		unix.Write(fd, []byte("small"))
		unix.Close(fd)
	}
	return nil
}

// BenchmarkJudging measures what happens while a task waits, without the waiting.
func BenchmarkJudging(b *testing.B) {
	memory, err := os.MkdirTemp("/dev/shm", "observe")
	if err != nil {
		b.Skip(err)
	}
	defer os.RemoveAll(memory)
	b.Chdir(memory)
	if err := os.Mkdir("folder", 0o755); err != nil {
		b.Fatal(err)
	}
	for _, view := range []bool{true, false} {
		s := &scene{t: b, view: view, orders: orders{Writable: []string{memory}}}
		q := newQuick(newBoundary(s.watched(), restrict.Version()))
		root, err := unix.Open("/", unix.O_PATH, 0)
		if err != nil {
			b.Fatal(err)
		}
		var buffer [maxPath + 1]byte
		for _, path := range []string{"new", "folder/new", filepath.Join(memory, "folder/new")} {
			for _, flags := range []int{unix.O_CREAT | unix.O_EXCL, unix.O_CREAT} {
				b.Run(fmt.Sprintf("view=%t/%s/%#x", view, path[:3], flags), func(b *testing.B) {
					r := open(at(uint64(0xffffffffffffff9c), uint64(ptr(path))), uint64(flags|unix.O_WRONLY))
					for b.Loop() {
						text, errno := readText(unix.Gettid(), r.first.addr, buffer[:])
						if errno != 0 || !q.harmless(unix.Gettid(), root, r, text, nil) {
							b.Fatal("not harmless")
						}
					}
				})
			}
		}
		unix.Close(root)
	}
}
