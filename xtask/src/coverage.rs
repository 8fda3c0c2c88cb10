//! `cargo xtask conformance --report`: writes what the suite checks to `docs/conformance.md`, from
//! the suite that is linked in.

use std::fs;
use std::path::Path;

use a2_conformance::saboteurs::SABOTEURS;
use a2_conformance::{Capability, all_cases};
use anyhow::{Context, Result, bail};

use crate::suite::{self, Case, DOCUMENT, FAULTS, MODEL, Saboteur, Suite};

/// Writes the document; an error when the trail is not whole.
pub(crate) fn write() -> Result<()> {
    let root = root()?;
    let suite = linked(root)?;
    if suite != read(root)? {
        bail!("the tables read as text differ from those that are compiled: build, then try again");
    }
    let findings = suite::check(&suite);
    for (path, line, what) in &findings {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        eprintln!("{path}{line}: {what}");
    }
    fs::write(root.join(DOCUMENT), suite::render(&suite)).context(DOCUMENT)?;
    println!("{DOCUMENT}: {} cases, {} saboteurs", suite.cases.len(), suite.saboteurs.len());
    if !findings.is_empty() {
        bail!("{} things are missing or wrong", findings.len());
    }
    Ok(())
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the repository's root")
}

fn text(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).context(path.to_owned())
}

/// The suite as it is compiled.
fn linked(root: &Path) -> Result<Suite> {
    let cases = all_cases().map(|case| Case {
        name: case.name().to_owned(),
        rules: case.rules().map(|rule| rule.name().to_owned()).collect(),
        needs: case.needed().iter().map(|needed| ident(*needed)).collect(),
        live: case.scenarios().any(|scenario| scenario.is_live()),
    });
    let saboteurs = SABOTEURS.iter().map(|saboteur| Saboteur {
        name: saboteur.name().to_owned(),
        rule: saboteur.rule().name().to_owned(),
        breaks: saboteur.breaks().to_owned(),
        caught_by: saboteur.caught_by().to_owned(),
    });
    let (model, faults) = (text(root, MODEL)?, text(root, FAULTS)?);
    Ok(Suite::new(&model, &faults, cases.collect(), saboteurs.collect()))
}

/// The suite as its sources tell it, as tidy reads them.
fn read(root: &Path) -> Result<Suite> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(root.join(suite::CASES)).context(suite::CASES)? {
        cases.push(fs::read_to_string(entry?.path())?);
    }
    let (model, faults) = (text(root, MODEL)?, text(root, FAULTS)?);
    let saboteurs = text(root, suite::SABOTEURS)?;
    Ok(Suite::read(&model, &faults, cases.iter().map(String::as_str), &saboteurs))
}

/// A capability as the tables write it.
fn ident(capability: Capability) -> String {
    format!("{capability:?}")
}

#[cfg(test)]
mod tests {
    use a2_conformance::backends::{Memory, Sqlite};
    use a2_conformance::{Factory, Isolation, Setup};

    use super::*;

    #[test]
    fn the_tables_read_as_text_are_those_that_are_compiled() {
        let root = root().unwrap();
        let (linked, read) = (linked(root).unwrap(), read(root).unwrap());
        assert!(!linked.cases.is_empty() && !linked.saboteurs.is_empty());
        for (linked, read) in linked.cases.iter().zip(&read.cases) {
            assert_eq!(linked, read);
        }
        assert_eq!(linked, read);
    }

    #[tokio::test]
    async fn the_backends_lack_what_the_document_says() {
        let factories: [&dyn Factory; 2] = [&Memory::default(), &Sqlite::default()];
        for (factory, backend) in factories.into_iter().zip(suite::BACKENDS) {
            assert_eq!(factory.name(), backend.name);
            let subject = factory.open(Setup::new(None, Isolation::Own)).await.unwrap();
            let lacks = Capability::ALL.iter().filter(|capability| !subject.has(**capability));
            assert_eq!(lacks.map(|lacked| ident(*lacked)).collect::<Vec<_>>(), backend.lacks);
        }
    }
}
