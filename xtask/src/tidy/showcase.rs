//! The README's program is a committed example, word for word: what compiles is what is shown.

use super::Problem;
use crate::readme::{EXAMPLE, blocks, program};
use crate::repo::Tree;

/// The README's first Rust block is the example's program.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let readme = tree.text("README.md").unwrap_or_default();
    let shown = blocks(readme, "rust").into_iter().next().unwrap_or_default();
    let compiled = tree.text(EXAMPLE).map(program).unwrap_or_default();
    if shown.is_empty() || shown != compiled {
        let what = format!("its program must be that of {EXAMPLE}");
        return vec![Problem::in_file("README.md", what)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_examples() {
        let readme = ("README.md", "# A\n```rust\nfn main() {}\n```\n");
        let same = (EXAMPLE, "//! The README's program.\n\nfn main() {}\n");
        assert_eq!(check(&Tree::of(&[readme, same])), []);
        let other = (EXAMPLE, "//! The README's program.\n\nfn main() { run() }\n");
        for tree in [Tree::of(&[readme, other]), Tree::of(&[readme]), Tree::of(&[])] {
            assert_eq!(
                check(&tree)[0].to_string(),
                "README.md: its program must be that of crates/a2-store-sqlite/examples/hello.rs"
            );
        }
    }
}
