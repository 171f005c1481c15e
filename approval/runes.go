package approval

import (
	"unicode"
	"unicode/utf8"
)

// Marks of our own in a shown text. The same characters in the text itself are
// escaped, and so are those that look like them, so that nobody can fake them.
const (
	openQuote, closeQuote = "«", "»" // around a quoted text
	openNote, closeNote   = "⟨", "⟩" // around what stands for something left out
	openSpace             = "␣"      // a space that would be lost or overlooked
)

const lookAlikes = "«»⟨⟩␣" +
	"≪≫《》⟪⟫⦅⦆‹›〈〉〈〉❬❭❮❯❰❱⧼⧽⦑⦒᚛᚜＜＞︿﹀︽︾﹤﹥⍃⍄ᐸᐳ˂˃⪡⪢⎵⍽␠⌴⏘"

var reserved = func() map[rune]bool {
	set := map[rune]bool{
		'\u2800': true, '\U0001D159': true, '\U00013441': true, '\U00013442': true, '\U00016FE4': true, // drawn empty
		'\uFFFC': true, '\uFFFD': true, // drawn for what could not be read
	}
	for _, r := range lookAlikes {
		set[r] = true
	}
	return set
}()

// overlays are combining marks drawn across the letter, as if struck out.
var overlays = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0334, Hi: 0x0338, Stride: 1}, {Lo: 0x20D2, Hi: 0x20D3, Stride: 1}, {Lo: 0x20D8, Hi: 0x20DA, Stride: 1},
	{Lo: 0x20E5, Hi: 0x20E6, Stride: 1}, {Lo: 0x20EA, Hi: 0x20EB, Stride: 1},
}, R32: []unicode.Range32{{Lo: 0x10A39, Hi: 0x10A39, Stride: 1}, {Lo: 0x16AF0, Hi: 0x16AF4, Stride: 1}, {Lo: 0x1BC9E, Hi: 0x1BC9E, Stride: 1}}}

// rightToLeft are the blocks of scripts that run from right to left. Their
// letters reorder the signs and digits that stand between them, without any
// control character.
var rightToLeft = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0590, Hi: 0x08FF, Stride: 1}, {Lo: 0xFB1D, Hi: 0xFDFF, Stride: 1}, {Lo: 0xFE70, Hi: 0xFEFF, Stride: 1},
}, R32: []unicode.Range32{{Lo: 0x10800, Hi: 0x10FFF, Stride: 1}, {Lo: 0x1E800, Hi: 0x1EFFF, Stride: 1}}}

// plain reports whether a character can be shown as it is: it is visible, takes
// its own place and leaves the others in theirs. Characters that are not known
// (unassigned, private use) are not plain.
func plain(r rune, st style) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7F
	case reserved[r], !unicode.IsGraphic(r), unicode.Is(unicode.Zs, r):
		return false
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
		return false
	case unicode.Is(unicode.Me, r), unicode.Is(overlays, r):
		return false
	case unicode.Is(rightToLeft, r):
		return st.prose
	}
	return true
}

// alphabets are those with letters that look like Latin ones.
var alphabets = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Coptic", unicode.Coptic}, {"Lisu", unicode.Lisu},
}

// foreign describes the characters outside ASCII in a text.
type foreign struct {
	count     int
	alphabets []string // of the letters among them, in the order of the table
	mixed     bool     // one word has letters of several alphabets
}

// foreignIn looks at the whole of s.
func foreignIn(s string) foreign {
	var f foreign
	seen := make([]bool, len(alphabets)) // in the text, outside ASCII
	word := -1                           // alphabet of the current word so far
	for _, r := range s {
		if r >= utf8.RuneSelf && plain(r, style{prose: true}) {
			f.count++
		}
		if !unicode.IsLetter(r) {
			if !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '_' {
				word = -1
			}
			continue
		}
		for i, a := range alphabets {
			latin := r < utf8.RuneSelf // Latin comes first; most text needs no table
			if !latin && !unicode.Is(a.table, r) {
				continue
			}
			seen[i] = seen[i] || r >= utf8.RuneSelf
			f.mixed = f.mixed || word >= 0 && word != i
			word = i
			break
		}
	}
	for i, a := range alphabets {
		if seen[i] {
			f.alphabets = append(f.alphabets, a.name)
		}
	}
	return f
}
