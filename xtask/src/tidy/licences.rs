//! Both licences are there as whole texts.

use super::Problem;
use crate::repo::Tree;

/// What every manifest says.
pub(super) const EXPRESSION: &str = "MIT OR Apache-2.0";

/// File, how the text begins, how it ends.
const TEXTS: [(&str, &str, &str); 2] = [
    ("LICENSE-MIT", "MIT License", "SOFTWARE."),
    ("LICENSE-APACHE", "Apache License", "limitations under the License."),
];

/// The licence files are whole, and the workspace names them.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, beginning, end) in TEXTS {
        let text = tree.text(path).unwrap_or_default().trim();
        if !text.starts_with(beginning) || !text.ends_with(end) {
            problems.push(Problem::in_file(path, "must hold the whole licence"));
        }
    }
    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    if !manifest.contains(&format!("license = \"{EXPRESSION}\"")) {
        problems
            .push(Problem::in_file("Cargo.toml", format!("must say license = \"{EXPRESSION}\"")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_texts_are_needed_whole() {
        let mit = ("LICENSE-MIT", "MIT License\n…\nSOFTWARE.\n");
        let apache = ("LICENSE-APACHE", "  Apache License\n…\nlimitations under the License.\n");
        let manifest = ("Cargo.toml", "license = \"MIT OR Apache-2.0\"");
        assert_eq!(check(&Tree::of(&[mit, apache, manifest])), []);
        let cut = ("LICENSE-APACHE", "Apache License\n");
        let said: Vec<_> = check(&Tree::of(&[cut])).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "LICENSE-MIT: must hold the whole licence",
                "LICENSE-APACHE: must hold the whole licence",
                "Cargo.toml: must say license = \"MIT OR Apache-2.0\""
            ]
        );
    }
}
