//! The README's commands and program, run as they stand there: what it shows must work.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::run;

/// The committed example that the README's program is a copy of.
pub(crate) const EXAMPLE: &str = "crates/a2-store-sqlite/examples/hello.rs";

/// The contents of the fenced blocks of one language, in order.
pub(crate) fn blocks<'a>(markdown: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    let mut found = Vec::new();
    let mut rest = markdown;
    while let Some((_, after)) = rest.split_once(opening.as_str()) {
        let Some((block, after)) = after.split_once("```") else { break };
        found.push(block);
        rest = after;
    }
    found
}

/// The example's program: what follows the comment that every module begins with.
pub(crate) fn program(example: &str) -> &str {
    let mut rest = example;
    while let Some(line) = rest.strip_prefix("//!") {
        rest = line.split_once('\n').map_or("", |(_, after)| after);
    }
    rest.trim_start_matches('\n')
}

/// The arguments of the README's cargo commands: those of its first `sh` block.
fn commands(markdown: &str) -> Vec<Vec<&str>> {
    let block = blocks(markdown, "sh").into_iter().next().unwrap_or_default();
    let lines = block.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.filter_map(|line| line.trim().strip_prefix("cargo ")).map(words).collect()
}

fn is_test(command: &[&str]) -> bool {
    command.first() == Some(&"test")
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

/// The arguments of the README's test command.
pub(crate) fn test_command(root: &Path) -> Result<Vec<String>> {
    let markdown = read(root)?;
    let tests: Vec<_> = commands(&markdown).into_iter().filter(|c| is_test(c)).collect();
    match tests.as_slice() {
        [test] => Ok(test.iter().map(|word| (*word).to_owned()).collect()),
        _ => bail!("README.md: its first sh block must hold one `cargo test` command"),
    }
}

/// Runs the README's other commands, then its program.
pub(crate) fn run(root: &Path) -> Result<()> {
    let markdown = read(root)?;
    for command in commands(&markdown).iter().filter(|c| !is_test(c)) {
        run::echoed(run::cargo(root).args(command))?;
    }
    // It leaves a file where it runs.
    let folder = root.join("target").join("readme");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut hello = run::cargo(root);
    hello.args(["run", "--package", "a2-store-sqlite", "--example", "hello", "--manifest-path"]);
    run::echoed(hello.arg(root.join("Cargo.toml")).current_dir(&folder))
}

fn read(root: &Path) -> Result<String> {
    std::fs::read_to_string(root.join("README.md")).context("README.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# A\n```sh\ncargo run -p a   # shows it\ncargo test --workspace\n```\n\
                          ```rust\nfn main() {}\n```\n```sh\ncargo add a\n```\n";

    #[test]
    fn the_first_shell_block_holds_the_commands() {
        assert_eq!(commands(README), [vec!["run", "-p", "a"], vec!["test", "--workspace"]]);
        assert!(commands("no block").is_empty());
    }

    #[test]
    fn a_program_is_the_example_without_its_comment() {
        assert_eq!(blocks(README, "rust"), ["fn main() {}\n"]);
        assert_eq!(program("//! What it is.\n//!\n\nfn main() {}\n"), "fn main() {}\n");
        assert_eq!(program("//! only"), "");
    }
}
