//! What a registry and a reader need of a manifest.

use super::{Problem, licences};
use crate::repo::Package;

/// Every published package has what `cargo package` and crates.io ask for.
pub(super) fn check(packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let mut must = |holds: bool, what: &str| {
            if !holds {
                problems.push(Problem::in_file(&format!("package {}", package.name), what));
            }
        };
        must(package.license.as_deref() == Some(licences::EXPRESSION), "must inherit the licence");
        let described = package.description.as_ref().is_some_and(|text| text.len() >= 20);
        must(described, "must have a description that says what it is");
        if package.is_published() {
            must(package.repository.is_some(), "must name the repository");
            must(package.readme.is_some(), "must have a readme");
            must(package.rust_version.is_some(), "must name the oldest compiler, rust-version");
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(json: &str) -> Package {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_whole_manifest_is_right() {
        let published = package(
            r#"{"name": "a", "description": "A store of session logs", "publish": null,
                "license": "MIT OR Apache-2.0", "repository": "https://example.org",
                "readme": "README.md", "rust_version": "1.89"}"#,
        );
        let own = package(
            r#"{"name": "b", "description": "The workspace's commands", "publish": [],
                "license": "MIT OR Apache-2.0"}"#,
        );
        assert_eq!(check(&[published, own]), []);
    }

    #[test]
    fn what_is_missing_is_named() {
        let bare = package(r#"{"name": "a", "description": "x", "license": "MIT"}"#);
        let said: Vec<_> = check(&[bare]).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "package a: must inherit the licence",
                "package a: must have a description that says what it is",
                "package a: must name the repository",
                "package a: must have a readme",
                "package a: must name the oldest compiler, rust-version"
            ]
        );
    }
}
