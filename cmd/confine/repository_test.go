package main

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is where a file has certainly grown a second concept.
const maxLines = 600

// topLevel is all that may lie at the top of the repository, besides files
// whose names begin with a dot and what .gitignore names.
var topLevel = []string{"cmd", "rpc", "sandbox", "approval", "extensions", "docs", "go.mod", "go.sum", "README.md", "LICENSE"}

func TestPackageComments(t *testing.T) {
	comments := map[string]string{} // package to the first words of its comment
	for _, file := range sourceFiles(t) {
		if file.test {
			continue
		}
		if _, seen := comments[file.pkg]; !seen {
			comments[file.pkg] = ""
		}
		if file.syntax.Doc == nil {
			continue
		}
		want := "Package " + file.syntax.Name.Name + " "
		if file.syntax.Name.Name == "main" {
			want = "Command confine "
		}
		text := file.syntax.Doc.Text()
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: the package comment does not begin with %q", file.name, want)
		}
		if comments[file.pkg] != "" {
			t.Errorf("%s: package %s has a second package comment", file.name, file.pkg)
		}
		comments[file.pkg] = text
	}
	for pkg, text := range comments {
		if text == "" {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

func TestFilesStayShort(t *testing.T) {
	top := repositoryTop(t)
	for _, file := range sourceFiles(t) {
		if file.test {
			continue
		}
		data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(file.name)))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(data, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines; look for its second concept", file.name, lines)
		}
	}
}

func TestTopLevel(t *testing.T) {
	top := repositoryTop(t)
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(filepath.Join(top, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		rule := "/" + name
		if entry.IsDir() {
			rule += "/"
		}
		if strings.HasPrefix(name, ".") || slices.Contains(topLevel, name) || slices.Contains(strings.Fields(string(ignored)), rule) {
			continue
		}
		t.Errorf("%s does not belong at the top of the repository", name)
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	target  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestLinksLeadSomewhere follows every link from a page to a file or heading of
// the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	top := repositoryTop(t)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "extensions/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
	}
	texts := map[string]string{} // by path below top, without code
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(top, page)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(name)] = fence.ReplaceAllString(string(data), "")
	}
	links := 0
	for page, text := range texts {
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			link := match[1]
			if strings.Contains(link, "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link, "#")
			if file == "" {
				file = page
			} else {
				file = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, link)
			} else if anchor != "" && !slices.Contains(anchors(texts[file]), anchor) {
				t.Errorf("%s: the link %s leads to no heading", page, link)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// anchors returns what GitHub calls the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}
