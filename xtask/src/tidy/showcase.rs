//! The programs that readmes show are committed examples, word for word: what compiles is what is
//! shown.

use super::Problem;
use crate::readme::{EXAMPLE, blocks, program};
use crate::repo::Tree;

/// The readmes, and the example that the first Rust block of each is.
const SHOWN: [(&str, &str); 2] =
    [("README.md", EXAMPLE), ("conformance/README.md", "conformance/examples/toy/main.rs")];

/// Each readme shows its example's program.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let differs = |(readme, example): &&(&str, &str)| {
        let shown = tree.text(readme).and_then(|text| blocks(text, "rust").into_iter().next());
        shown.is_none_or(|shown| shown.is_empty() || tree.text(example).map(program) != Some(shown))
    };
    let problem = |(readme, example): &(&str, &str)| {
        Problem::in_file(readme, format!("its program must be that of {example}"))
    };
    SHOWN.iter().filter(differs).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# A\n```rust\nfn main() {}\n```\n";
    const PROGRAM: &str = "//! The readme's program.\n\nfn main() {}\n";

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_program_is_the_examples() {
        let [(one, first), (two, second)] = SHOWN;
        let same = [(one, README), (first, PROGRAM), (two, README), (second, PROGRAM)];
        assert_eq!(said(&same), [""; 0]);
    }

    #[test]
    fn a_program_that_differs_or_is_missing_is_found() {
        let [(one, first), (two, second)] = SHOWN;
        let other = "//! The readme's program.\n\nfn main() { run() }\n";
        let rules = [
            "README.md: its program must be that of crates/a2-store-sqlite/examples/hello.rs",
            "conformance/README.md: its program must be that of conformance/examples/toy/main.rs",
        ];
        assert_eq!(
            said(&[(one, README), (first, other), (two, README), (second, PROGRAM)]),
            rules[..1]
        );
        assert_eq!(
            said(&[(one, README), (first, PROGRAM), (two, README), (second, other)]),
            rules[1..]
        );
        assert_eq!(said(&[(one, README), (two, "# No program\n"), (second, PROGRAM)]), rules);
        assert_eq!(said(&[]), rules);
    }
}
