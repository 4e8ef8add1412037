//! A task's way from one request to the next.

use super::{
    Ask, Kind, Land, Request, Rule, SegmentsModel, Verb, World,
    ledger::Told,
    network::Answer,
    state::{Phase, Task},
};

impl SegmentsModel {
    pub(super) fn start(&self, world: &mut World, task: u8, layout: u8) {
        world.task(task).layout = layout;
        self.proceed(world, task, Vec::new());
    }

    /// The next round, with the loans to land.
    pub(super) fn begin_anew(&self, world: &mut World, task: u8, lands: Vec<Land>) {
        let rounds = world.left.rounds;
        let known = world.task(task);
        if known.round >= rounds {
            return self.stop(world, task);
        }
        *known = Task {
            round: known.round + 1,
            layout: known.layout,
            ..Task::default()
        };
        self.proceed(world, task, lands);
    }

    fn proceed(&self, world: &mut World, task: u8, lands: Vec<Land>) {
        if self.config.caller(task).verb != Verb::Operate {
            self.end(world, task);
        } else if self.config.operation(task).kind == Kind::Read {
            self.collect(world, task);
        } else {
            self.operate(world, task, lands);
        }
    }

    /// Asks, and waits for the answers.
    pub(super) fn send(
        &self,
        world: &mut World,
        task: u8,
        phase: Phase,
        asks: impl IntoIterator<Item = (u8, Ask)>,
    ) {
        let known = world.task(task);
        let (round, layout) = (known.round, known.layout);
        (known.phase, known.awaits) = (phase, 0);
        for (segment, ask) in asks {
            world.task(task).awaits |= 1 << segment;
            world.network.insert(Request {
                task,
                round,
                segment,
                layout,
                ask,
            });
        }
    }

    /// Whether the task waits for an answer to that very request.
    pub(super) fn awaits(&self, world: &World, request: &Request) -> bool {
        let task = &world.tasks[usize::from(request.task)];
        let phase = match request.ask {
            Ask::Operate(_) => Phase::Operating,
            Ask::Collect { again: true } if self.breaks(Rule::SecondReadsFollowEveryFirst) => {
                task.phase
            }
            Ask::Collect { again: false } => Phase::CollectingFirst,
            Ask::Collect { again: true } => Phase::CollectingAgain,
            Ask::Lend { .. } => Phase::Borrowing,
            Ask::Land(_) => Phase::Landing,
            Ask::Refuse { .. } => Phase::Refusing,
            Ask::Credit => Phase::Crediting,
            Ask::RefuseThere => Phase::RefusingThere,
            Ask::FinishTransfer { .. } => Phase::Finishing,
            Ask::Confirm | Ask::Cancel => Phase::Ending,
            Ask::Forget => return false,
        };
        task.phase == phase
            && task.round == request.round
            && task.awaits & (1 << request.segment) != 0
    }

    /// The answer is heard.
    pub(super) fn hear(&self, world: &mut World, request: &Request, answer: Answer) {
        let task = request.task;
        match answer {
            Answer::Busy | Answer::Nothing => {}
            Answer::Layout => self.waits_for_layout(world, task),
            Answer::Doubtful | Answer::Missing => self.stop(world, task),
            Answer::Conflict => {
                let content = self.config.caller(task).content;
                self.answer(world, task, Told::Conflict(content));
            }
            Answer::TooOld => self.answer(world, task, Told::TooOld),
            Answer::Unknown => self.is_unknown(world, request),
            Answer::Recorded(outcome) if matches!(request.ask, Ask::Confirm | Ask::Cancel) => {
                self.ended(world, task, outcome);
            }
            Answer::Recorded(outcome) => self.learns(world, task, outcome),
            Answer::Short(money) => {
                world.task(task).lands.clear();
                world.task(task).views[usize::from(request.segment)] = Some(money);
                self.collect(world, task);
            }
            Answer::Shown(money) if request.ask == (Ask::Collect { again: true }) => {
                self.shown_again(world, request, money);
            }
            Answer::Shown(money) => self.shown(world, request, money),
            Answer::Lent(lent) => self.lent(world, request, Some(lent)),
            Answer::NotLent => self.lent(world, request, None),
            Answer::Landed | Answer::Changed => self.begin_anew(world, task, Vec::new()),
            Answer::Credited => self.credited(world, task, true),
            Answer::CreditRefused => self.credited(world, task, false),
            Answer::NoAccount => self.no_account(world, request),
            Answer::Exists => self.credit(world, task),
        }
    }

    /// A source that does not know a transfer that was credited has forgotten it, finished.
    fn is_unknown(&self, world: &mut World, request: &Request) {
        match request.ask {
            Ask::FinishTransfer { credited } => {
                if credited && self.holds(Rule::PurgedSourceIsFinished) {
                    self.forget_credit(world, request.task);
                }
                self.stop(world, request.task);
            }
            _ => self.answer(world, request.task, Told::Unknown),
        }
    }

    fn waits_for_layout(&self, world: &mut World, task: u8) {
        let known = world.task(task);
        *known = Task {
            phase: Phase::Outdated,
            round: known.round,
            layout: known.layout,
            ..Task::default()
        };
    }

    /// The caller has its answer.
    pub(super) fn answer(&self, world: &mut World, task: u8, told: Told) {
        let operation = self.config.caller(task).operation;
        world.ledger.fate(operation).told.insert(told);
        self.stop(world, task);
    }

    /// Without one, if it has none: it gives up, or dies.
    pub(super) fn stop(&self, world: &mut World, task: u8) {
        *world.task(task) = Task {
            phase: Phase::Over,
            ..Task::default()
        };
    }
}
