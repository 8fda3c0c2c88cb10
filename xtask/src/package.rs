//! Packing: every published crate is packed and built from its own archive, so that a file that
//! lies outside a crate, or a link that is not followed, is found before a release.

use std::path::Path;

use anyhow::Result;

use crate::{repo, run};

/// Packs and builds every crate that is published.
///
/// Crates that depend on each other see each other's archives. Outside of CI the working tree may
/// hold changes that are not committed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut package = run::cargo(root);
    package.args(["package", "--locked"]);
    if std::env::var_os("CI").is_none() {
        package.arg("--allow-dirty");
    }
    for name in repo::packages(root)?.iter().filter(|p| p.is_published()).map(|p| &p.name) {
        package.args(["--package", name]);
    }
    run::echoed(&mut package)
}
