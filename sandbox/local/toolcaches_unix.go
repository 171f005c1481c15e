//go:build unix

package local

import (
	"os"
	"path/filepath"
	"strings"
)

// toolCache is a folder in which a tool keeps what it can make or fetch again,
// and without which it fails or starts from nothing.
type toolCache struct {
	name     string // below the folder for temporary files, where it may be moved
	path     string
	variable string // tells the tool another place, after an '=' what comes before it; empty if none does, or none is needed
	when     move
}

// move says when a cache is somewhere else for a command.
type move int

const (
	ifReadOnly  move = iota // without a layer too: the tool fails if it cannot write
	ifMissing               // only if the host has none: what is there is of use unwritten
	inPlace                 // never: the tool would otherwise look for one on the mount of its project
	alwaysMoved             // it is no cache, and nobody wants what is there to be used: a browser's profile
)

// toolCaches lists the caches of common tools as an environment places them, outer before inner: one is of interest only if none around it has
// a layer. Folders that also hold programs or settings for good are not listed as
// a whole. docs/configuration.md has the same table.
func toolCaches(getenv func(string) string) []toolCache {
	p := places{getenv}
	home := func(name string) string { return p.at("", name) }
	cache := p.at("XDG_CACHE_HOME", ".cache")
	ccache := home(".ccache") // until it knew XDG
	if !isFolder(ccache) {
		ccache = cache + "/ccache"
	}
	data := p.at("XDG_DATA_HOME", ".local/share")
	gopath := p.at("GOPATH", "go")
	cargo := p.at("CARGO_HOME", ".cargo")
	gradle := p.at("GRADLE_USER_HOME", ".gradle")
	yarn := cache + "/yarn"
	if os.Geteuid() == 0 {
		yarn = "/usr/local/share/.cache/yarn" // which yarn 1 takes for root's home
	}
	store := filepath.Join(p.at("PNPM_HOME", data+"/pnpm"), "store")
	list := []toolCache{
		{"", cache, "XDG_CACHE_HOME", ifMissing},
		{"go-build", p.at("GOCACHE", cache+"/go-build"), "GOCACHE", ifReadOnly},
		{"ccache", p.at("CCACHE_DIR", ccache), "CCACHE_DIR", ifReadOnly},
		{"sccache", p.at("SCCACHE_DIR", cache+"/sccache"), "", inPlace},
		{"pip", p.at("PIP_CACHE_DIR", cache+"/pip"), "", inPlace},
		{"uv", p.at("UV_CACHE_DIR", cache+"/uv"), "UV_CACHE_DIR", ifReadOnly},
		{"poetry", p.at("POETRY_CACHE_DIR", cache+"/pypoetry"), "", inPlace},
		{"pre-commit", p.at("PRE_COMMIT_HOME", cache+"/pre-commit"), "", inPlace},
		{"node-gyp", p.at("npm_config_devdir", cache+"/node-gyp"), "", inPlace},
		{"corepack", p.at("COREPACK_HOME", cache+"/node/corepack"), "", inPlace},
		{"yarn", p.at("YARN_CACHE_FOLDER", yarn), "", inPlace},
		{"pnpm-metadata", cache + "/pnpm", "", inPlace},
		{"deno", p.at("DENO_DIR", cache+"/deno"), "", inPlace},
		{"composer", p.at("COMPOSER_CACHE_DIR", cache+"/composer"), "", inPlace},
		{"coursier", p.at("COURSIER_CACHE", cache+"/coursier"), "", inPlace},
		{"bazel", cache + "/bazel", "", inPlace},
		{"zig", p.at("ZIG_GLOBAL_CACHE_DIR", cache+"/zig"), "", inPlace},

		{"go-telemetry", filepath.Join(p.at("XDG_CONFIG_HOME", ".config"), "go", "telemetry"), "", inPlace},
		{"go", gopath + "/pkg", "", inPlace}, // checksums of modules are beside them
		{"go-mod", p.at("GOMODCACHE", gopath+"/pkg/mod"), "GOMODCACHE", ifMissing},
		{"cargo", cargo + "/registry", "CARGO_HOME", ifMissing},
		{"cargo-git", cargo + "/git", "", inPlace},
		{"npm", p.at("npm_config_cache", p.at("NPM_CONFIG_CACHE", ".npm")), "npm_config_cache", ifReadOnly},
		{"pnpm", store, "pnpm_config_store_dir", inPlace},
		{"yarn-berry", p.at("YARN_GLOBAL_FOLDER", ".yarn/berry"), "", inPlace},
		{"bun", p.at("BUN_INSTALL_CACHE_DIR", ".bun/install/cache"), "BUN_INSTALL_CACHE_DIR", ifReadOnly},
		{"gradle", gradle, "GRADLE_USER_HOME", ifReadOnly},
		{"maven", home(".m2"), "MAVEN_OPTS=-Dmaven.repo.local=", ifMissing},
		{"maven-repository", home(".m2/repository"), "", inPlace},
		{"maven-wrapper", home(".m2/wrapper"), "", inPlace},
		{"ivy", home(".ivy2/cache"), "", inPlace},
		{"nuget", p.at("NUGET_PACKAGES", ".nuget/packages"), "", inPlace},
		{"nuget-http", data + "/NuGet", "", inPlace},
		{"pub", p.at("PUB_CACHE", ".pub-cache"), "", inPlace},

		// Chromium and Chrome end when they cannot make a profile, the headless ones too.
		{"browser", p.at("CHROME_CONFIG_HOME", p.at("XDG_CONFIG_HOME", ".config")), "CHROME_CONFIG_HOME", alwaysMoved},
	}
	for _, part := range []string{"caches", "daemon", "native", "wrapper", "notifications", "workers", "jdks", ".tmp"} {
		list = append(list, toolCache{"gradle-" + part, gradle + "/" + part, "", inPlace}) // beside settings that are hidden
	}
	if isFolder(store+"/v10") || isFolder(store+"/v3") {
		// pnpm before 11 has its variables from npm, which warns of those it does not know.
		list = append(list, toolCache{"pnpm-10", store, "npm_config_store_dir", inPlace})
	}
	return list
}

// cacheVariables tell tools where their caches are: below tmp, if they are moved.
// writable says of a cache that commands can write it where it is.
func cacheVariables(getenv func(string) string, writable func(path string) bool, tmp string) map[string]string {
	variables := map[string]string{}
	for _, c := range toolCaches(getenv) {
		if c.variable == "" {
			continue
		}
		written := writable(c.path)
		name, before, _ := strings.Cut(c.variable, "=")
		switch {
		case c.when == inPlace && written && isFolder(c.path):
			variables[name] = before + c.path
		case c.when == alwaysMoved, c.when == ifReadOnly && !written, c.when == ifMissing && !written && !isFolder(c.path):
			variables[name] = before + filepath.Join(tmp, ".cache", c.name)
		}
	}
	return variables
}

// places finds folders as tools do.
type places struct{ getenv func(string) string }

// at is the folder that a variable names, or one below the home folder. Of a list
// the first counts.
func (p places) at(variable, otherwise string) string {
	first, _, _ := strings.Cut(p.getenv(variable), string(filepath.ListSeparator))
	switch {
	case filepath.IsAbs(first):
		return filepath.Clean(first)
	case filepath.IsAbs(otherwise):
		return filepath.Clean(otherwise)
	}
	return filepath.Join(p.getenv("HOME"), otherwise)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
