package turn

import "strings"

// synonyms are other words for a word of a query, both stemmed. They are words of everyday speech for what tools do and
// what they do it to: whoever asks says "folder" and "get rid of", and the tool is called delete_directory.
var synonyms = thesaurus(
	"add create new make insert",
	"delete remove erase forget drop clear",
	"change update modify edit set adjust",
	"show list get view read",
	"find search lookup query",
	"run execute start launch",
	"stop kill terminate end",
	"write save store",
	"send post message",
	"copy clone duplicate",
	"reply answer respond",
	"move rename",
	"share permission access",
	"check validate verify",
	"discard reset revert undo restore",
	"download fetch export",
	"tap click touch press",
	"scroll swipe",
	"rotate orientation",
	"schedule plan",
	"deploy publish release",

	"folder directory",
	"picture image photo",
	"screen display",
	"mail email inbox",
	"documentation doc reference manual",
	"repository repo",
	"chart graph plot diagram",
	"task todo reminder",
	"url link",
	"page site website web",
	"sheet spreadsheet workbook excel",
	"table database",
	"column field",
	"row record entry",
	"person user member people colleague customer contact",
	"meeting event appointment calendar",
	"phone mobile device android iphone ios",
	"bug issue ticket error",
	"price cost billing",
	"directions route drive navigation",
	"place location address",
	"available availability free",
	"news headline",
	"text content",
	"log output console",
)

// synonymWeight is what a match of a synonym counts for, against one of the word itself.
const synonymWeight = 0.5

func thesaurus(groups ...string) map[string][]string {
	all := map[string][]string{}
	for _, group := range groups {
		words := strings.Fields(group)
		for i := range words {
			words[i] = stem(words[i])
		}
		for i, w := range words {
			all[w] = append(append(all[w], words[:i]...), words[i+1:]...)
		}
	}
	return all
}
