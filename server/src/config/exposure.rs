//! Files with secrets, which are for the coordinator alone.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// The rights of every user, and of a file's group, to read and to write it.
const EVERY_USER: u32 = 0o006;
const ITS_GROUP: u32 = 0o060;

/// Who may read or write `file`, besides its owner, root and the groups of this process. None: nobody, or the system does
/// not tell.
pub(super) fn exposure(file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    let (mode, group) = (metadata.mode() & 0o7777, metadata.gid());
    let who = exposed_to(mode, group, &own_groups())?;
    Some(format!(
        "{file:?} has mode {mode:04o}: {who} of the host may read or write it"
    ))
}

fn exposed_to(mode: u32, group: u32, own_groups: &[u32]) -> Option<String> {
    let is_foreign = group != 0 && !own_groups.is_empty() && !own_groups.contains(&group);
    match mode {
        mode if mode & EVERY_USER != 0 => Some("every user".to_owned()),
        mode if mode & ITS_GROUP != 0 && is_foreign => Some(format!("the group {group}")),
        _ => None,
    }
}

/// The groups of this process, as Linux tells them; empty: it does not.
fn own_groups() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let groups = status
        .lines()
        .filter_map(|line| line.strip_prefix("Gid:").or(line.strip_prefix("Groups:")))
        .flat_map(str::split_ascii_whitespace)
        .filter_map(|group| group.parse().ok());
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_read_a_secret_if_it_is_one_of_the_coordinators() {
        let own = own_groups();
        assert!(!own.is_empty(), "Linux tells them");
        let foreign = (1..).find(|group| !own.contains(group)).unwrap();
        for (mode, group, is_exposed) in [
            (0o640, foreign, true),
            (0o620, foreign, true),
            (0o600, foreign, false),
            (0o640, 0, false),
            (0o640, own[0], false),
            (0o644, own[0], true),
        ] {
            let told = exposed_to(mode, group, &own);
            assert_eq!(told.is_some(), is_exposed, "{mode:o} {group}: {told:?}");
        }
    }
}
