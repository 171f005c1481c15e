package protect

import (
	"path/filepath"
	"slices"
)

// autoRun are files and folders at the top of a workspace from which a program
// of the person's takes what to run, or what to allow, when it merely opens the
// workspace or is started in it. What only tells programs how to build, test or
// format is ordinary work and not here, nor are texts that agents read.
//
// Where they do not exist they are kept absent, which costs a mount each.
var autoRun = []string{
	".vscode",   // tasks that run when the folder is opened; settings that name programs and approve tools
	".idea",     // run configurations and startup tasks
	".nvim.lua", // Neovim and Vim run these two where 'exrc' is set
	".exrc",
	".envrc",    // direnv runs it
	".mcp.json", // servers that agents start
	".claude",   // hooks, permissions and servers of agents
	".codex",
	".cursor",
	".gemini",
	".confine", // reserved for confine itself
}

// alsoRun are like autoRun, but too seldom met to be kept absent: when a run makes
// one, its result says so.
var alsoRun = []string{
	".zed", ".helix", ".fleet", // language servers, tasks
	".nvimrc", ".vimrc", ".vim", // the last has coc's settings, with servers to start
	".agents", ".windsurf", ".continue", ".opencode", "opencode.json", ".crush.json", // agents, as above
	".qwen", ".kiro", ".roo", ".amazonq", ".aider.conf.yml", ".codewhale", ".deepseek",
}

// Names of what lies in a git folder.
const (
	dotGit         = ".git"
	gitConfig      = "config"
	gitHooks       = "hooks"
	gitCommonDir   = "commondir"
	gitDirPointer  = "gitdir"
	worktreeConfig = "config.worktree"
)

// bareParts make the folder in which all of them are a repository to git, which
// believes its configuration.
var bareParts = []string{"HEAD", "objects", "refs"}

// Notable reports whether something of this name, wherever in a workspace it is
// made, may be run or believed by a program outside. Of some names only the thing
// itself counts, which is last in its path, and not what is made in it.
func Notable(name string, last bool) bool {
	if name == dotGit || slices.Contains(bareParts, name) {
		return last
	}
	return slices.Contains(autoRun, name) || slices.Contains(alsoRun, name)
}

// ordinaryFiles are those of autoRun that are files.
var ordinaryFiles = []string{".nvim.lua", ".exrc", ".envrc", ".mcp.json"}

// IsFolder reports whether a protected path that does not exist would be made as a
// folder, if by its usual program.
func IsFolder(path string) bool {
	name := filepath.Base(path)
	return slices.Contains(autoRun, name) && !slices.Contains(ordinaryFiles, name)
}

// Cover says what stands on the host in the place of a protected path that does
// not exist, while a run goes on, so that something can be mounted there.
type Cover struct {
	File    bool   // otherwise a folder, which git does not see when it is empty
	Content string // of a file
}

// CoverOf is what does no harm to programs outside that find it: git takes
// folders of these names for broken repositories, and a commondir that names the
// folder it is in for what it is without one.
func CoverOf(path string) Cover {
	switch filepath.Base(path) {
	case gitCommonDir:
		return Cover{File: true, Content: ".\n"}
	case gitConfig, worktreeConfig:
		return Cover{File: true}
	}
	return Cover{}
}
