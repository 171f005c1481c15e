package seatbelt

import "slices"

// base is what every profile begins with: nothing is allowed but what programs
// need to run at all and what reaches nobody else.
func base() []rule {
	return slices.Concat([]rule{
		deny("default"),
		// Which "default" leaves open in this version of the language.
		deny("process-info* nvram*"),

		allow("process-exec process-fork"),
		allow("process-info* signal mach-priv-task-port", list("target", "same-sandbox")),

		// The arguments of other processes, with which comes their environment.
		allow("sysctl-read"),
		deny("sysctl-read", list("sysctl-name-prefix", text("kern.procargs"))),
		allow("sysctl-write", each("sysctl-name", "kern.tcsm_enable", "kern.grade_cputype")...),

		allow("user-preference-read"),
		allow("mach-lookup", each("global-name", services...)...),

		// Python's pools, OpenMP, shared arrays of Python and of PyTorch; what
		// other programs share has other names.
		allow("ipc-posix-sem"),
		allow("ipc-posix-shm-read* ipc-posix-shm-write*",
			list("ipc-posix-name-regex", pattern(`^/__KMP_REGISTERED_LIB_[0-9]+$`)),
			list("ipc-posix-name-regex", pattern(`^/(psm|torch)_[0-9A-Za-z_]+$`))),
		allow("ipc-posix-shm-read*", list("ipc-posix-name", text("apple.shm.notification_center"))),

		// Pairs of sockets, and those that a command makes in places of its own.
		allow("system-socket", list("socket-domain", "AF_UNIX")),
	})
}

// services are those of the system that a command may look up. Each answers
// questions, or asks the profile itself before it changes something. Left out are
// those that start programs outside (Launch Services, Apple events), that know
// passwords (securityd), fetch something (trustd, nsurlsessiond) or show something.
var services = []string{
	"com.apple.FSEvents",                         // watching files
	"com.apple.FontObjectsServer",                //
	"com.apple.bsd.dirhelper",                    // where the person's temporary files are
	"com.apple.cfprefsd.agent",                   // writing is user-preference-write
	"com.apple.cfprefsd.daemon",                  //
	"com.apple.fonts",                            //
	"com.apple.logd",                             //
	"com.apple.lsd.mapdb",                        // which type a file has
	"com.apple.system.logger",                    //
	"com.apple.system.notification_center",       //
	"com.apple.system.opendirectoryd.libinfo",    // names of users
	"com.apple.system.opendirectoryd.membership", //
}

// devices are what a command can open below /dev, with the operations besides
// looking at it.
func devices() []rule {
	return []rule{
		// A terminal of the person's belongs to the person, disks to root.
		deny("file-read-data file-write* file-ioctl", list("subpath", text("/dev"))),
		allow("file-read-data", slices.Concat(
			each("literal", "/dev", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin"),
			each("subpath", "/dev/fd"))...),
		allow("file-write-data", slices.Concat(
			each("literal", "/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr"), // as they are open anyway
			each("subpath", "/dev/fd"))...),
		allow("file-ioctl", each("literal", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/tty")...),
		allow("file-read-data file-write-data", each("literal", "/dev/tty", "/dev/dtracehelper")...),

		// Terminals that the command makes itself: the system marks them.
		allow("pseudo-tty"),
		allow("file-read* file-write* file-ioctl", list("literal", text("/dev/ptmx"))),
		allow("file-read* file-write* file-ioctl", list("require-all",
			list("regex", pattern(`^/dev/ttys[0-9]+$`)), list("extension", text("com.apple.sandbox.pty")))),
	}
}

// network is what a command with the host's network gets besides. The sockets of
// services stay closed, but for the one that knows names.
func network() []rule {
	return []rule{
		allow("network-outbound", list("remote ip", text("*:*"))),
		allow("network-inbound network-bind", list("local ip", text("*:*"))),
		allow("network-outbound", list("literal", text("/private/var/run/mDNSResponder"))),
		allow("system-socket",
			list("socket-domain", "AF_ROUTE"),
			list("require-all", list("socket-domain", "AF_SYSTEM"), list("socket-protocol", "2"))),
		allow("mach-lookup", each("global-name",
			"com.apple.SystemConfiguration.DNSConfiguration",
			"com.apple.SystemConfiguration.configd",
			"com.apple.dnssd.service",
			"com.apple.networkd",
			"com.apple.ocspd",
			"com.apple.trustd", // whether a certificate is good
			"com.apple.trustd.agent")...),
	}
}
