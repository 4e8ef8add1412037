//! Pages that name tests name tests that exist.

use std::{collections::BTreeSet, fs, path::Path};

/// Every function in a Rust file below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let names = source.split("fn ").skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                rest[..end.unwrap_or(rest.len())].to_owned()
            });
            found.extend(names);
        }
    }
}

/// What `page` has in backticks that reads like the name of a test.
fn named(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.matches('_').count() >= 2 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    quoted.filter(is_name).collect()
}

#[test]
fn tests_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut existing = BTreeSet::new();
    functions(root, &mut existing);
    for (page, at_least) in [
        ("docs/failure-modes.md", 30),
        ("docs/parity.md", 100),
        ("docs/protocol.md", 5),
    ] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let named = named(&text);
        assert!(named.len() >= at_least, "{page} names {}", named.len());
        let missing: Vec<_> = named
            .iter()
            .filter(|name| !existing.contains(**name))
            .collect();
        assert!(missing.is_empty(), "{page}: no such test: {missing:?}");
    }
}
