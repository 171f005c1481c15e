package view

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/mounts"
)

// mounted is what is mounted here.
func mounted() (mounts.Table, error) {
	list, err := listed(mounts.File, math.MaxInt)
	return mounts.Parse(string(list)), err
}

// strayKernel are the places at which the host shows a file system of the kernel
// where it does not belong. What this user cannot reach, its commands cannot either.
func strayKernel(table mounts.Table) []string {
	return slices.DeleteFunc(table.StrayKernel(), func(place string) bool {
		_, err := os.Lstat(place)
		return err != nil
	})
}

// checkRoots refuses roots and grants that lie in such a file system, wherever it
// is mounted.
func checkRoots(table mounts.Table, p sandbox.Policy) error {
	for _, root := range slices.Concat(p.Roots, grants(p)) {
		if home := table.Of(root.Path); home.Kernel() {
			return fmt.Errorf("%s cannot be opened to commands: it belongs to the kernel (%s); open another folder", strconv.Quote(root.Path), home.Kind)
		}
	}
	return nil
}

// CheckBare refuses a policy if, without a view that hides them, file systems of
// the kernel would be writable.
func CheckBare(p sandbox.Policy) error {
	writable := slices.Clone(p.Writable)
	if p.Mode == sandbox.WorkspaceWrite {
		writable = append(writable, p.Roots...)
	}
	if len(writable) == 0 {
		return nil
	}
	table, err := mounted()
	if err != nil {
		return fmt.Errorf("finding what is mounted in writable folders: %w", err)
	}
	if err := checkRoots(table, p); err != nil {
		return err
	}
	for _, place := range strayKernel(table) {
		if slices.ContainsFunc(writable, func(r *sandbox.Root) bool { return sandbox.Within(place, r.Path) }) {
			return fmt.Errorf("%s is a file system of the kernel and would be writable: unmount it, or allow user namespaces, with which it can be hidden", strconv.Quote(place))
		}
	}
	return nil
}
