package local

import (
	"strings"
	"testing"
)

func TestRefuser(t *testing.T) {
	for name, row := range map[string]struct {
		host        Host
		why, remedy string // parts
	}{
		"Debian's sysctl":                 {Host{Unprivileged: "0", Maximum: "9"}, "kernel.unprivileged_userns_clone = 0", "kernel.unprivileged_userns_clone=1"},
		"root does not mind it":           {Host{Unprivileged: "0", AppArmor: "1", Root: true}, "the host refuses", "sysctl"},
		"none at all, for root as well":   {Host{Maximum: "0", Root: true}, "user.max_user_namespaces = 0", "user.max_user_namespaces=10000"},
		"AppArmor":                        {Host{AppArmor: "1", Maximum: "9"}, "AppArmor", "/etc/apparmor.d/confine with `profile confine /opt/bin/confine flags"},
		"a container":                     {Host{Seccomp: true, Root: true}, "seccomp filter", "seccomp profile"},
		"a container on a host that does": {Host{Seccomp: true, AppArmor: "1"}, "AppArmor", "apparmor_restrict_unprivileged_userns=0"},
		"nobody knows":                    {Host{Maximum: "9", AppArmor: "0", Unprivileged: "1"}, "the host refuses", "container's options"},
	} {
		why, remedies := row.host.Refuser("/opt/bin/confine")
		if !strings.Contains(why, row.why) || !strings.Contains(strings.Join(remedies, " "), row.remedy) {
			t.Errorf("%s: %q, %q", name, why, remedies)
		}
	}
}
