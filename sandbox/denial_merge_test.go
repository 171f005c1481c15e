package sandbox

import (
	"slices"
	"testing"
)

func TestMergeDenials(t *testing.T) {
	seen := func(op, path string) Denial { return Denial{Op: op, Path: path, Evidence: Observed, Count: 1} }
	said := func(op, path string) Denial { return Denial{Op: op, Path: path, Evidence: Stderr, Count: 2} }
	address := func(e Evidence) Denial { return Denial{Op: opConnect, Address: "192.0.2.1:443", Evidence: e, Count: 1} }
	idle := seen(opRename, "/w/.git/config")
	idle.Idle = true
	route := Denial{Op: opConnect, Address: "[2001:4860:4860::8888]:443", Evidence: Observed, Count: 1}
	for name, test := range map[string]struct {
		seen, said []Denial
		state      ObservationState
		want       []Denial
		incidental []bool
		matter     bool
		succeeded  bool
	}{
		"nothing":                   {state: ObservedFully},
		"what was seen stands":      {seen: []Denial{seen(opCreate, "/a")}, state: ObservedFully, want: []Denial{seen(opCreate, "/a")}, matter: true},
		"words alone prove nothing": {said: []Denial{said(opWrite, "/a"), address(Stderr)}, state: ObservedFully},
		"but of reading they do":    {said: []Denial{said(opRead, "/a"), said(opExec, "/b")}, state: ObservedFully, want: []Denial{said(opRead, "/a"), said(opExec, "/b")}, matter: true},
		"and of what a filter refuses": {said: []Denial{{Op: opChmod, Path: "/a", Errno: "EPERM", Evidence: Stderr, Count: 1}, {Op: opChmod, Path: "/b", Errno: "EROFS", Evidence: Stderr, Count: 1}}, state: ObservedFully,
			want: []Denial{{Op: opChmod, Path: "/a", Errno: "EPERM", Evidence: Stderr, Count: 1}}, matter: true},
		"nor sees new namespaces": {said: []Denial{{Op: opUnshare, Path: userNamespace, Errno: "EPERM", Evidence: Stderr, Count: 1}}, state: ObservedFully,
			want: []Denial{{Op: opUnshare, Path: userNamespace, Errno: "EPERM", Evidence: Stderr, Count: 1}}, matter: true},
		"or if somebody was absent": {seen: []Denial{seen(opCreate, "/a")}, said: []Denial{said(opWrite, "/a"), said(opWrite, "/b")}, state: ObservedPartly,
			want: []Denial{seen(opCreate, "/a"), said(opWrite, "/b")}, matter: true},
		"nobody looked":                             {said: []Denial{said(opWrite, "/a")}, state: NotObserved, want: []Denial{said(opWrite, "/a")}, matter: true},
		"an address is one place":                   {seen: []Denial{address(Observed)}, said: []Denial{address(Stderr)}, state: ObservedPartly, want: []Denial{address(Observed)}, matter: true},
		"a cache does not matter":                   {seen: []Denial{seen(opCreate, "/home/u/.cache/x")}, state: ObservedFully, want: []Denial{seen(opCreate, "/home/u/.cache/x")}, incidental: []bool{true}},
		"nor does a look at routes":                 {seen: []Denial{route}, state: ObservedFully, want: []Denial{route}, incidental: []bool{true}},
		"what would change nothing does not matter": {seen: []Denial{idle}, state: ObservedFully, want: []Denial{idle}, incidental: []bool{true}, succeeded: true},
		"unless the command failed":                 {seen: []Denial{idle}, state: ObservedFully, want: []Denial{idle}, matter: true},
		"unless it is spoken of": {seen: []Denial{seen(opCreate, "/home/u/.cache/x")}, said: []Denial{said(opWrite, "/home/u/.cache/x")}, state: ObservedFully,
			want: []Denial{seen(opCreate, "/home/u/.cache/x")}, matter: true},
	} {
		for i, incidental := range test.incidental {
			test.want[i].Incidental = incidental
		}
		mentioned := func(path string) bool {
			return slices.ContainsFunc(test.said, func(d Denial) bool { return d.Path == path })
		}
		got := MergeDenials(test.seen, test.said, Observation{State: test.state}, Circumstances{Housekeeping{Home: "/home/u"}, mentioned, test.succeeded})
		if !slices.Equal(got, test.want) || Matter(got) != test.matter {
			t.Errorf("%s: merged to %+v, matter %t", name, got, Matter(got))
		}
	}
}

func TestMessagesMentionPaths(t *testing.T) {
	s := NewDenialScanner()
	s.Write([]byte("fatal: Unable to create '/w/.git/index.lock': Read-only file system\nsh: 1: cannot create out/log: Permission denied\n"))
	for path, want := range map[string]bool{"/w/.git/index.lock": true, "/w/out/log": true, "/elsewhere/out/log": true, "/w/.git": false, "/w/log": false, "/w/xout/log": false} {
		if got := s.Mentions(path, "/w"); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

func TestHousekeeping(t *testing.T) {
	h := HousekeepingOf([]string{"PATH=/bin", "HOME=/home/u", "XDG_CACHE_HOME=/caches", "XDG_CONFIG_HOME=/etc/u"})
	for path, want := range map[string]bool{
		"/usr/lib/python3/json/__pycache__":              true,
		"/usr/lib/python3/json/__pycache__/a.cpython.12": true,
		"/w/.git/index.lock":                             true,
		"/w/.git/modules/m/index.lock":                   true,
		"/store/p.git/index.lock":                        true, // .git is a link to it
		"/w/index.lock":                                  false,
		"/w/.git/config.lock":                            false,
		"/caches/x":                                      true,
		"/caches":                                        true,
		"/home/u/.cache":                                 true,
		"/home/u/.config/go":                             true, // to be made for what is below
		"/home/u/.config/go/telemetry/local/x":           true,
		"/etc/u":                                         true,
		"/etc/u/go":                                      true,
		"/etc/u/go/telemetry/x":                          true,
		"/etc/u/git":                                     false,
		"/etc":                                           false,
		"/home/u/.config/go/env":                         false,
		"/home/u/.config/git":                            false,
		"/home/u/.npm/_logs/a":                           true,
		"/home/u/.npmrc":                                 false,
		"/home/u/.bash_history":                          true,
		"/home/u/.lesshsQ":                               true, // which becomes .lesshst
		"/home/u/.bashrc":                                false,
		"/home/u":                                        false,
		"/home":                                          false,
		"/":                                              false,
		"":                                               false,
		"/home/u/.ssh/authorized_keys":                   false,
		"/opt/x":                                         false,
		"/usr/lib/chromium/extensions":                   true,
		"/usr/lib/chromium/extensions.new":               false,
		"/tmp/hsperfdata_u":                              true,
		"/tmp/hsperfdata_u/12":                           true,
		"/tmp/hsperfdata_u/x/12":                         false,
		"/tmp/x":                                         false,
		"/proc/12/coredump_filter":                       true,
		"/proc/12/mem":                                   false,
		"/run/user/0/gnupg":                              true,
		"/run/user/0/gnupg/S.gpg-agent":                  false,
		"/run/user/0":                                    false,
	} {
		if got := h.Holds(path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
	}
	if (Housekeeping{}).Holds("/.cache/x") {
		t.Error("a command without a home folder has a cache in the root folder")
	}
}
