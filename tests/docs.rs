//! Pages that name tests name tests that exist, and links of pages lead somewhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The macros whose arguments name the tests that they make.
const SUITES: [&str; 9] = [
    "baselines",
    "break_without",
    "each_fires_its_rule",
    "everywhere",
    "hold",
    "lock_conformance",
    "on_both",
    "store_conformance",
    "topology_conformance",
];

/// Every test in a Rust file below `folder`.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            found.extend(marked(&source).map(str::to_owned));
            let suites = SUITES.iter().flat_map(|suite| of_suite(&source, suite));
            found.extend(suites.map(str::to_owned));
        }
    }
}

/// The functions that an attribute makes tests which are run, in the long part at least.
fn marked(source: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    source.lines().filter_map(move |line| {
        let line = line.trim_start().trim_start_matches("$(");
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let is_long = line.starts_with("#[ignore = \"long: ");
        is_test &= is_long || !line.starts_with("#[ignore");
        let (before, rest) = line.split_once("fn ")?;
        let is_function = matches!(before, "" | "async " | "pub " | "pub async ");
        let is_test = is_function && std::mem::take(&mut is_test);
        words(rest).next().filter(|_| is_test)
    })
}

/// The words in each invocation of the macro `suite`.
fn of_suite<'a>(source: &'a str, suite: &str) -> impl Iterator<Item = &'a str> {
    let suite = format!("{suite}!");
    let begins: Vec<_> = source.match_indices(&suite).collect();
    let invocations = begins.into_iter().filter_map(move |(at, suite)| {
        let is_whole = !source[..at].ends_with(is_of_word);
        let body = source[at + suite.len()..].trim_start();
        let end = match body.chars().next().filter(|_| is_whole)? {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            _ => return None,
        };
        Some(&body[..body.find(end)?])
    });
    invocations.flat_map(words)
}

fn words(source: &str) -> impl Iterator<Item = &str> {
    source
        .split(|c| !is_of_word(c))
        .filter(|word| !word.is_empty())
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[test]
fn only_tests_that_are_run_are_found() {
    let source = "
        #[tokio::test(start_paused = true)]
        #[expect(clippy::unwrap_used)]
        async fn a_test_of_ours() { a_helper_of_it() }
        fn a_helper_of_it() {}
        #[test]
        #[ignore = \"started by another\"]
        fn a_test_that_rests() {}
        #[test]
        #[ignore = \"long: an hour\"]
        fn a_test_of_an_hour() {}
        on_both![a_test_of_a_suite, another_one_of_it];
        not_on_both![a_word_of_another];
    ";
    assert_eq!(
        marked(source).collect::<Vec<_>>(),
        ["a_test_of_ours", "a_test_of_an_hour"]
    );
    let found: Vec<_> = of_suite(source, "on_both").collect();
    assert_eq!(found, ["a_test_of_a_suite", "another_one_of_it"]);
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
    tests(root, &mut existing);
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

/// Every Markdown file below `folder`.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of `page` outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The anchors of the headings in `page`, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        kept.collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_pages_lead_to_files_and_headings_that_exist() {
    let mut all = Vec::new();
    pages(Path::new(env!("CARGO_MANIFEST_DIR")), &mut all);
    let (mut checked, mut broken) = (0, Vec::new());
    for path in &all {
        let page = fs::read_to_string(path).unwrap();
        let targets = prose(&page).flat_map(|line| line.split("](").skip(1));
        for target in targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)) {
            if target.starts_with("http") {
                continue;
            }
            checked += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let holds = match heading {
                "" => file.exists(),
                heading => {
                    fs::read_to_string(&file).is_ok_and(|page| anchors(&page).contains(heading))
                }
            };
            if !holds {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(checked >= 50, "{checked} links in {} pages", all.len());
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The site has every page of docs, and the pages that a reader looks for.
#[test]
fn the_summary_of_the_site_has_every_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let targets = summary.split("](").skip(1);
    let listed: Vec<_> = targets
        .map(|rest| rest.split_once(')').unwrap().0)
        .collect();
    let mut all = Vec::new();
    pages(&docs, &mut all);
    let written: BTreeSet<_> = all
        .iter()
        .map(|page| page.strip_prefix(&docs).unwrap().to_str().unwrap())
        .filter(|page| *page != "SUMMARY.md")
        .collect();
    let once: BTreeSet<_> = listed.iter().copied().collect();
    assert_eq!(once, written);
    assert_eq!(
        once.len(),
        listed.len(),
        "a page is listed twice: {listed:?}"
    );
    for title in [
        "Start",
        "Choose a lock",
        "Fencing",
        "Counters",
        "Redlock",
        "Service",
        "Servers",
        "Command line",
        "Coordinator",
        "Metrics and alerts",
        "Repair",
        "Upgrade",
        "Backends",
        "Failure modes",
        "Benchmarks",
        "Compare",
        "From Redisson",
        "Write a client",
    ] {
        assert!(summary.contains(&format!("[{title}](")), "{title}");
    }
}
