//! The processes' files, merged.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Deed, Event, Fault, Kind, Phase};
use crate::counters::{self, Attempt};

/// What all processes did, in the order of time.
#[derive(Clone, Debug)]
pub struct History {
    /// Ordered by time. Every operation of a killed process has an end.
    pub events: Vec<Event>,
    /// What was asked of latches, and answered.
    pub latches: Vec<Attempt>,
}

impl History {
    /// Merges `events`. What a process had begun when it was killed gets an end of unknown outcome,
    /// at that time.
    pub fn new(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.t_ns);
        let ends = ends_of_the_killed(&events);
        events.extend(ends);
        events.sort_by_key(|event| event.t_ns);
        Self {
            events,
            latches: Vec::new(),
        }
    }

    /// Reads and merges every file in `dir`.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has a line that is no event. A last line without its end is what a
    /// killed process leaves, and is passed over.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut events = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                read_file(&path, &mut events)?;
            }
        }
        Ok(Self {
            latches: counters::read(dir)?,
            ..Self::new(events)
        })
    }
}

fn read_file(path: &PathBuf, events: &mut Vec<Event>) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (line, number) in whole.lines().zip(1..) {
        let event = serde_json::from_str(line).map_err(|error| {
            let place = path.display();
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{place}:{number}: {error}"),
            )
        })?;
        events.push(event);
    }
    Ok(())
}

fn ends_of_the_killed(events: &[Event]) -> Vec<Event> {
    let mut open: HashMap<(u32, u64), &Event> = HashMap::new();
    let mut ends = Vec::new();
    for event in events {
        let id = (event.process, event.deed.op);
        match (event.deed.kind, event.deed.phase) {
            // Amid an acquisition, which goes on.
            (Kind::Wait, _) => {}
            (_, Phase::Invoke) => drop(open.insert(id, event)),
            (_, _) => drop(open.remove(&id)),
        }
        let killed = event.deed.victim.filter(|_| {
            event.deed.phase == Phase::Ok && event.deed.fault.is_some_and(Fault::ends_a_process)
        });
        let Some(killed) = killed else { continue };
        open.retain(|(process, _), begun| {
            if *process == killed {
                ends.push(end(begun, event.t_ns));
            }
            *process != killed
        });
    }
    ends
}

fn end(begun: &Event, t_ns: u64) -> Event {
    let deed = Deed {
        phase: Phase::Info,
        reason: Some("killed".into()),
        ..begun.deed.clone()
    };
    Event {
        t_ns,
        deed,
        ..begun.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Recorder;

    fn kill(recorder: &Recorder, victim: u32) {
        recorder.record(Deed {
            fault: Some(Fault::KillClient),
            victim: Some(victim),
            ..Deed::ended(recorder.next_op(), Kind::Nemesis, Phase::Ok)
        });
    }

    #[test]
    fn files_are_merged_and_what_the_killed_had_begun_ends_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let nemesis = Recorder::create(dir.path(), "run", 7, 0).unwrap();
        let killed = Recorder::create(dir.path(), "run", 7, 1).unwrap();
        let other = Recorder::create(dir.path(), "run", 7, 2).unwrap();
        killed.record(Deed::invoke(1, Kind::Acquire));
        killed.record(Deed::ended(1, Kind::Acquire, Phase::Fail));
        killed.record(Deed::invoke(2, Kind::Acquire));
        killed.record(Deed::ended(2, Kind::Wait, Phase::Ok));
        other.record(Deed::invoke(1, Kind::Acquire));
        kill(&nemesis, 1);

        let history = History::read(dir.path()).unwrap();
        let ends: Vec<_> = history.events[5..]
            .iter()
            .map(|event| (event.process, event.deed.op, event.deed.phase))
            .collect();
        assert_eq!(history.events.len(), 7);
        assert_eq!(ends, [(0, 1, Phase::Ok), (1, 2, Phase::Info)]);
    }

    #[test]
    fn a_line_cut_off_by_a_kill_is_passed_over_and_any_other_reported() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::create(dir.path(), "run", 7, 1).unwrap();
        recorder.record(Deed::invoke(1, Kind::Acquire));
        let path = dir.path().join("00001.jsonl");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{}", &whole[..40])).unwrap();
        assert_eq!(History::read(dir.path()).unwrap().events.len(), 1);

        fs::write(&path, format!("{}\n{whole}", &whole[..40])).unwrap();
        let error = History::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("00001.jsonl:1"), "{error}");
    }

    #[test]
    fn a_process_number_is_never_used_again() {
        let dir = tempfile::tempdir().unwrap();
        drop(Recorder::create(dir.path(), "run", 7, 1).unwrap());
        assert!(Recorder::create(dir.path(), "run", 7, 1).is_err());
    }
}
