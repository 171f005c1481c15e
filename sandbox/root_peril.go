package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Peril is what a person should know before a file or folder is granted.
type Peril string

// The closed set of perils, the gravest first. The empty one means that
// nothing is known.
const (
	PerilSystem   Peril = "system"   // belongs to the system, or runs as another user
	PerilRuns     Peril = "runs"     // other programs run what stands in it, or do what it says, as the person
	PerilSecrets  Peril = "secrets"  // usually holds passwords or keys
	PerilServices Peril = "services" // has sockets or FIFOs in it, whose other ends can be reached
)

// Perils says what is known to be dangerous about a grant, from names that are
// well known and, of a folder, from what lies directly in it. A folder is as
// dangerous as what well-known names lie below it. What is not named here is
// not therefore harmless.
func Perils(r *Root, kind GrantKind) []Peril {
	var perils []Peril
	parts := strings.Split(strings.ToLower(filepath.ToSlash(r.Path)), "/")
	if kind == GrantWrite {
		system := slices.ContainsFunc(systemFolders, func(f string) bool { return Within(r.Path, f) || Within(f, r.Path) })
		if system && !slices.ContainsFunc(sharedFolders, func(f string) bool { return Within(r.Path, f) }) {
			perils = append(perils, PerilSystem)
		}
		if names(parts, r, runFiles) {
			perils = append(perils, PerilRuns)
		}
	}
	if names(parts, r, secretFiles) {
		perils = append(perils, PerilSecrets)
	}
	if !r.File && holdsServices(r.Path) {
		perils = append(perils, PerilServices)
	}
	return perils
}

// names reports whether a path is, is in, or is a folder that holds one of some
// well-known relative paths.
func names(parts []string, r *Root, known []string) bool {
	for _, name := range known {
		want := strings.Split(name, "/")
		for i := range parts {
			n := min(len(want), len(parts)-i)
			if !slices.Equal(parts[i:i+n], want[:n]) {
				continue
			}
			// The whole name anywhere in the path, or its beginning at the end:
			// there the rest can be made, but many a folder is called "go".
			if n == len(want) || want[0][0] == '.' || isThere(r, strings.Join(want[n:], "/")) {
				return true
			}
		}
		if isThere(r, name) {
			return true
		}
	}
	return false
}

// isThere reports whether a folder has something of that name in it.
func isThere(r *Root, name string) bool {
	if r.File {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.Path, filepath.FromSlash(name)))
	return err == nil
}

// maxLooked bounds how many names of a folder are looked at.
const maxLooked = 512

func holdsServices(folder string) bool {
	// A command may put a FIFO in its place at any time.
	dir, err := os.OpenFile(folder, os.O_RDONLY|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxLooked) // as far as it can be read
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0
	})
}

// systemFolders are where a change reaches every user.
var systemFolders = []string{
	"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/sbin", "/usr", "/var",
	"/nix", "/snap", "/System", "/Library", "/Applications", "/private/etc", "/private/var",
}

// sharedFolders lie in those and are everybody's.
var sharedFolders = []string{"/var/tmp", "/var/folders", "/private/var/folders", "/private/var/tmp"}

// runFiles are files and folders, in lower case, that some program obeys or
// runs without being asked: shells, editors, git, build tools, logins.
var runFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile",
	".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".config/fish", ".config/nushell", ".config/powershell",
	".oh-my-zsh", ".bashrc.d", ".config/environment.d", ".pam_environment", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc",
	".config/autostart", ".config/systemd", ".local/share/systemd", ".local/share/applications", ".local/share/dbus-1",
	"library/launchagents", "library/launchdaemons", ".local/bin", ".cargo/bin", "go/bin", ".bin", "node_modules/.bin", ".venv/bin",
	".ssh", ".gnupg", ".gitconfig", ".config/git", ".git/hooks", ".git/config", ".git/modules", ".git/worktrees", ".git/commondir", ".git/config.worktree",
	".gitmodules", ".githooks", ".husky", ".pre-commit-config.yaml", ".github/workflows", ".gitlab-ci.yml", ".hgrc", ".subversion",
	".vim", ".vimrc", ".gvimrc", ".exrc", ".nvim.lua", ".nvimrc", ".config/nvim", ".local/share/nvim", ".emacs", ".emacs.d", ".config/emacs", ".dir-locals.el",
	".vscode", ".vscode-server", ".config/code", ".cursor", ".idea", ".config/zed", ".zed", ".config/helix", ".helix", ".fleet",
	".envrc", ".direnvrc", ".config/direnv", ".mise.toml", "mise.toml", ".config/mise", ".tool-versions", ".devcontainer",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".cargo/config", ".cargo/config.toml", ".config/pip", ".pip", ".pypirc", ".condarc", ".bundle",
	".gemrc", ".m2", ".gradle", ".config/go", ".bazelrc", ".ccache", ".pythonrc", ".pythonrc.py", ".irbrc", ".pryrc", ".rprofile", ".ghci", ".gdbinit", ".lldbinit",
	".psqlrc", ".sqliterc", ".my.cnf", ".wgetrc", ".curlrc", ".netrc", ".screenrc", ".tmux.conf", ".config/tmux", ".config/kitty", ".config/alacritty", ".config/wezterm",
	".docker", ".kube", ".aws", ".claude", ".claude.json", ".mcp.json", ".codex", ".gemini", ".continue", ".aider.conf.yml", ".confine", ".config/confine",
	".terraformrc", ".config/containers", ".config/gh", ".mailcap", ".config/mimeapps.list", "crontab",
}

// secretFiles usually hold passwords or keys.
var secretFiles = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/rclone", ".config/containers/auth.json",
	".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".my.cnf", ".pgpass", ".env", ".env.local", ".vault-token",
	".password-store", ".local/share/keyrings", ".local/share/kwalletd", "library/keychains", ".mozilla", ".config/google-chrome", ".config/chromium",
	".config/bravesoftware", "library/application support/google", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
	".terraform.d", ".config/doctl", ".oci", ".claude.json", ".claude", ".codex", ".gemini", ".bash_history", ".zsh_history",
	"etc/shadow", "etc/gshadow", "etc/ssl/private", "etc/sudoers",
}
