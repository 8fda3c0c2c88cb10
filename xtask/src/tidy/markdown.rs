//! Links between documents lead somewhere: to a tracked file, and to a heading that it has.

use std::collections::HashMap;

use super::Problem;
use crate::repo::{Tree, resolve};

/// Every relative link of every document resolves.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, target) in links(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let end = if file.is_empty() { Some(path.to_owned()) } else { resolve(path, file) };
            let found = end.filter(|end| tree.exists(end));
            let whole = found.is_some_and(|end| {
                anchor.is_empty() || tree.text(&end).is_some_and(|text| has_heading(text, anchor))
            });
            if !whole {
                problems.push(Problem::at(path, line, format!("leads nowhere: {target}")));
            }
        }
    }
    problems
}

/// The lines outside of fenced blocks, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of `[text](target)` with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            found.push((number, target));
        }
    }
    found
}

/// Whether the document has a heading with this anchor, by the rule of the usual renderers.
fn has_heading(text: &str, anchor: &str) -> bool {
    let mut seen: HashMap<String, usize> = HashMap::new();
    prose(text).filter(|(_, line)| line.starts_with('#')).any(|(_, line)| {
        let slug = slug(line.trim_start_matches('#').trim());
        let count = seen.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 { slug == anchor } else { format!("{slug}-{}", *count - 1) == anchor }
    })
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: (&str, &str) =
        ("docs/model.md", "# The model\n## R1: Sessions & logs\n## Again\n## Again\n");

    #[test]
    fn links_that_lead_somewhere_are_right() {
        let readme = "[a](docs/model.md) [b](docs/model.md#r1-sessions--logs) [c](#top) [d](docs)\n\
                      [e](https://example.org/x) [f](docs/model.md#again-1)\n\n## Top\n\
                      ```\n[g](nowhere.md)\n```\n";
        assert_eq!(check(&Tree::of(&[("README.md", readme), MODEL])), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let readme = "[a](docs/gone.md)\n[b](docs/model.md#no-such)\n[c](../up.md)\n[d](#none)\n";
        let tree = Tree::of(&[("README.md", readme), MODEL]);
        let said: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "README.md:1: leads nowhere: docs/gone.md",
                "README.md:2: leads nowhere: docs/model.md#no-such",
                "README.md:3: leads nowhere: ../up.md",
                "README.md:4: leads nowhere: #none"
            ]
        );
    }
}
