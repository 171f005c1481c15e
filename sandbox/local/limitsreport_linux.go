package local

import (
	"github.com/confine-dev/confine/sandbox"
	"golang.org/x/sys/unix"
)

// limitFacet is what trials about a limit speak of.
func limitFacet(r sandbox.Resource) sandbox.Facet { return sandbox.Facet("limits." + string(r)) }

// limitClaims says which limits can be set for a kind of run, before anybody
// tried. isolated and ours are as countingFor has them.
func limitClaims(mode sandbox.Mode, isolated, ours bool) map[sandbox.Facet]sandbox.FacetReport {
	enforced := sandbox.FacetReport{State: sandbox.Enforced}
	claims := map[sandbox.Facet]sandbox.FacetReport{
		limitFacet(sandbox.OpenFiles):      enforced,
		limitFacet(sandbox.FileSize):       enforced,
		limitFacet(sandbox.TemporaryFiles): enforced,
		limitFacet(sandbox.Memory): {State: sandbox.Open,
			Reason: "the memory of a whole run is not limited; when it runs out, the kernel is told to end the run's processes before others"},
		limitFacet(sandbox.Disk): {State: sandbox.Open,
			Reason: "what a command writes where it may is bounded by the free space and the size of each file only"},
	}
	processes := enforced
	switch countingFor(isolated, ours) {
	case countUser:
		processes = sandbox.FacetReport{State: sandbox.Partial,
			Reason: "the kernel counts everything that your user runs: so many more than the machine ran when the command began"}
	case countNone:
		processes = sandbox.FacetReport{State: sandbox.Open, Reason: "root's processes can be counted from Linux 6.14 on only, and in namespaces that confine makes"}
	}
	claims[limitFacet(sandbox.ProcessCount)] = processes
	if !ours && !(isolated && mode == sandbox.ReadOnly) {
		claims[limitFacet(sandbox.TemporaryFiles)] = sandbox.FacetReport{State: sandbox.Open,
			Reason: "temporary files lie on the disk where confine can make no namespaces"}
	}
	return claims
}

// reports says what holds for a run: what is set, as far as trials confirmed it.
func (b *bounds) reports(confirmed map[sandbox.Facet]sandbox.FacetReport) []sandbox.LimitReport {
	numbers := map[sandbox.Resource]uint64{
		sandbox.ProcessCount:   b.processes,
		sandbox.OpenFiles:      b.of(unix.RLIMIT_NOFILE),
		sandbox.FileSize:       b.of(unix.RLIMIT_FSIZE),
		sandbox.TemporaryFiles: b.memory.Bytes,
	}
	if b.session != nil {
		numbers[sandbox.TemporaryFiles] = b.session.room.Bytes
	}
	var reports []sandbox.LimitReport
	for _, resource := range sandbox.Resources {
		held := confirmed[limitFacet(resource)]
		report := sandbox.LimitReport{Resource: resource, Limit: numbers[resource], State: held.State, Reason: held.Reason}
		switch {
		case report.State == sandbox.Open:
			report.Limit = 0
		case report.Limit == 0:
			report.State, report.Reason = sandbox.Open, "no limit is set"
		}
		reports = append(reports, report)
	}
	return reports
}

// end marks the limits that a run was seen to reach. signal is what ended the
// command.
func (b *bounds) end(reports []sandbox.LimitReport, signal string) []sandbox.LimitReport {
	reached := map[sandbox.Resource]bool{sandbox.FileSize: signal == "SIGXFSZ"}
	if b.session != nil {
		reached[sandbox.TemporaryFiles] = b.session.full()
	}
	marked := make([]sandbox.LimitReport, len(reports))
	for i, report := range reports {
		report.Reached = report.Limit != 0 && reached[report.Resource]
		marked[i] = report
	}
	return marked
}

// full reports whether nothing more fits into the session's temporary files.
func (s *session) full() bool {
	var stat unix.Statfs_t
	if s.files == nil || unix.Fstatfs(int(s.files.Fd()), &stat) != nil {
		return false
	}
	return stat.Bfree == 0 || stat.Ffree == 0
}

// limitStates are the states of all limits, for a report that is about no run.
func limitStates(confirmed map[sandbox.Facet]sandbox.FacetReport) map[sandbox.Resource]sandbox.FacetReport {
	states := map[sandbox.Resource]sandbox.FacetReport{}
	for _, resource := range sandbox.Resources {
		states[resource] = confirmed[limitFacet(resource)]
	}
	return states
}
