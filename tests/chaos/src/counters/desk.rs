//! Where calls are made, and written down.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join_all;
use ringfence_client::{
    Client, Counter, Counters,
    counter::{
        Account, Amount, CounterError, Durability, Effect, Ended, Found, HistoryCursor, Leg, Legs,
        RequestId, Reserved, StorageError, Swept, Terms,
        segment::{EffectKind, Refusal, State},
    },
};
use tokio::time::sleep;

use super::{
    Answer, Balance, Call, Deed, EffectWord, End, Log, Logged, LoggedEffect, Order, latches,
};

/// Before a loss that could not be accepted is accepted again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Calls of one process to accounts, by their numbers.
#[derive(Debug)]
pub struct Desk {
    /// For new requests, and deadlines.
    pub counters: Counters,
    /// The accounts.
    pub accounts: Vec<Counter>,
    /// Accounts that come and go, by the numbers after those.
    visitors: Vec<Counter>,
    /// An account that nobody creates: the one of any other number.
    nobody: Counter,
    client: Client,
    latches_last: Durability,
    log: Log,
}

impl Desk {
    /// At so many accounts, which there are, or will be.
    pub fn open(client: &Client, accounts: usize, log: Log) -> Self {
        let counters = client.counters();
        let open = |number| counters.open(&name(number)).expect("a short name");
        let nobody = counters.open("nobody").expect("a short name");
        Self {
            accounts: (0..accounts).map(open).collect(),
            visitors: Vec::new(),
            nobody,
            counters,
            client: client.clone(),
            latches_last: Durability::Memory,
            log,
        }
    }

    /// With so many accounts that come and go.
    #[must_use]
    pub fn with_visitors(mut self, visitors: usize) -> Self {
        let first = self.accounts.len();
        let open = |number| self.counters.open(&name(number)).expect("a short name");
        self.visitors = (first..first + visitors).map(open).collect();
        self
    }

    /// With latches that are set to outlast such failures.
    #[must_use]
    pub fn with_latches(mut self, durability: Durability) -> Self {
        self.latches_last = durability;
        self
    }

    /// How many accounts money may be sent to: one of them is not there, and others not always.
    pub fn destinations(&self) -> usize {
        self.accounts.len() + self.visitors.len() + 1
    }

    /// Creates the accounts.
    ///
    /// # Errors
    ///
    /// Any: servers that are new have no reason for one.
    pub async fn create(&self, terms: Terms, segments: u32) -> Result<(), CounterError> {
        for number in 0..self.accounts.len() {
            self.create_one(number, terms, segments).await?;
        }
        Ok(())
    }

    /// Creates the account of that number.
    ///
    /// # Errors
    ///
    /// Any.
    pub async fn create_one(
        &self,
        number: usize,
        terms: Terms,
        segments: u32,
    ) -> Result<(), CounterError> {
        self.counters.create(&name(number), terms, segments).await?;
        Ok(())
    }

    /// A change that is created now.
    pub fn order(&self, name: String, account: usize, amount: i64, deed: Deed) -> Order {
        let id = self.counters.request(&name).expect("a short name");
        Order {
            account,
            time_ms: id.time_ms(),
            name,
            amount,
            deed,
        }
    }

    /// Writes `call` down, makes it, writes the answer down.
    pub async fn call(&self, call: &Call) -> Answer {
        let number = self.log.asked(call);
        let answer = match call {
            Call::Latch(call) => latches::make(&self.client, call, self.latches_last)
                .await
                .unwrap_or_else(|error| latches::failed(&error)),
            call => match self.make(call).await {
                Ok(answer) => answer,
                Err(error) => match self.failed(&error) {
                    // It is still held, or its money is back: a repeat says which.
                    Answer::Returned if call.is_of_reservation() => {
                        Answer::Nothing(error.to_string())
                    }
                    answer => answer,
                },
            },
        };
        self.log.answered(number, &answer);
        answer
    }

    /// Writes down that an account came with its credit line, as if somebody had brought it.
    pub fn credited(&self, call: &Call) -> Answer {
        let number = self.log.asked(call);
        self.log.answered(number, &Answer::Done);
        Answer::Done
    }

    async fn make(&self, call: &Call) -> Result<Answer, CounterError> {
        Ok(match call {
            Call::Change(order) => self.change(order).await?,
            Call::Confirm(order) => ended(self.confirm(order).await?),
            Call::Cancel(order) => ended(self.account(order).cancel(&id(order)).await?.outcome),
            Call::Find(order) => found(self.account(order).find(&id(order)).await?),
            Call::Exact(account) => balance(self.numbered(*account).exact_balance().await?),
            Call::Fast(account) => balance(self.accounts[*account].balance().await?),
            Call::History(account) => self.logged(*account).await?,
            Call::Latch(_) => unreachable!("a latch is no account"),
        })
    }

    async fn change(&self, order: &Order) -> Result<Answer, CounterError> {
        let (account, id) = (self.account(order), id(order));
        let amount = Amount::new(order.amount).expect("orders are about something");
        match order.deed {
            Deed::Deposit => _ = account.deposit(&id, amount).await?,
            Deed::Deduct => _ = account.deduct(&id, amount).await?,
            Deed::Transfer(to) => {
                account.transfer(&id, amount, self.numbered(to)).await?;
            }
            Deed::Legs(to) => {
                let half = Amount::new(order.amount_of_each()).expect("there are two coins");
                let legs = to.map(|to| Leg {
                    to: self.numbered(to).account().clone(),
                    amount: half,
                });
                let legs = Legs::new(legs.to_vec()).expect("two accounts");
                account.transfer_legs(&id, &legs).await?;
            }
            Deed::Reserve(deadline_ms) | Deed::ReserveFor(deadline_ms, _) => {
                return Ok(
                    match account.reserve(&id, amount, deadline_ms).await?.outcome {
                        Reserved::Held => Answer::Held,
                        Reserved::Ended(end) => ended(end),
                    },
                );
            }
        }
        Ok(Answer::Done)
    }

    async fn confirm(&self, order: &Order) -> Result<Ended, CounterError> {
        let (account, id) = (self.account(order), id(order));
        let Deed::ReserveFor(_, to) = order.deed else {
            return Ok(account.confirm(&id).await?.outcome);
        };
        let leg = Leg {
            to: self.numbered(to).account().clone(),
            amount: Amount::new(order.amount_of_each()).expect("there are two coins"),
        };
        let legs = Legs::new(vec![leg]).expect("one account");
        let capture = RequestId::new(order.time_ms, &format!("{}/capture", order.name));
        let capture = capture.expect("a short name");
        let captured = account.capture(&id, &capture, &legs).await?;
        Ok(captured.outcome)
    }

    /// Sweeps every account. What could not be done, a later sweep does.
    ///
    /// # Errors
    ///
    /// An account's manifest cannot be read.
    pub async fn sweep(&self) -> Result<Vec<Swept>, CounterError> {
        let mut all = Vec::new();
        for account in &self.accounts {
            all.push(account.sweep().await?);
        }
        Ok(all)
    }

    /// Has the loss of segments accepted, of every account; one whose manifest is lost as well is created again.
    pub async fn accept(&self, terms: Terms, segments: u32) {
        let accounts = self.accounts.iter().enumerate();
        let accepted = accounts.map(async |(number, account)| {
            while let Err(error) = account.accept().await {
                if matches!(error, CounterError::NoAccount { .. }) {
                    // It says what is lost, and the account is there again.
                    let _ = self.counters.create(&name(number), terms, segments).await;
                }
                sleep(ACCEPT_AGAIN).await;
            }
        });
        join_all(accepted).await;
    }

    /// Has the doubt about segments accepted, of every account that there is.
    pub async fn accept_doubt(&self) {
        let accounts = self.accounts.iter().chain(&self.visitors);
        let accepted = accounts.map(async |account| {
            loop {
                match account.accept().await {
                    Ok(_) | Err(CounterError::NoAccount { .. }) => return,
                    Err(_) => sleep(ACCEPT_AGAIN).await,
                }
            }
        });
        join_all(accepted).await;
    }

    fn failed(&self, error: &CounterError) -> Answer {
        if let Some(refusal) = of_a_repeat(error) {
            return match refusal {
                Refusal::Missing => Answer::Unknown(error.to_string()),
                refusal => self.failed(&refusal.clone().into()),
            };
        }
        match error {
            CounterError::Insufficient => Answer::Insufficient,
            CounterError::UnknownReservation => Answer::Unreserved,
            CounterError::TransferRefused { .. } => Answer::Returned,
            CounterError::NoDestination { to } if to == self.nobody.account() => Answer::Returned,
            CounterError::Refused(Refusal::TooOld { .. } | Refusal::IdExpired { .. }) => {
                Answer::TooOld
            }
            CounterError::NoDestination { to } if self.comes_and_goes(to) => Answer::Absent,
            // Until what is lost or in doubt is accepted, or found again.
            CounterError::Lost { .. }
            | CounterError::Refused(Refusal::Doubtful)
            | CounterError::NoAccount { .. }
            | CounterError::NoDestination { .. } => Answer::Unknown(error.to_string()),
            error if !error.is_retryable() => Answer::Failed(error.to_string()),
            error => match error.effect() {
                Effect::None => Answer::Nothing(error.to_string()),
                Effect::Unknown => Answer::Unknown(error.to_string()),
            },
        }
    }

    /// Reads the whole log of an account, and adds it up: each effect begins where the one before it ended.
    async fn logged(&self, account: usize) -> Result<Answer, CounterError> {
        const PAGE: u32 = 1_000;
        let counter = self.numbered(account);
        let (mut logged, mut from) = (Logged::default(), HistoryCursor::default());
        let mut segments: HashMap<u32, (i64, i64)> = HashMap::new();
        let credit = -counter.inspect().await?.details.floor;
        if credit > 0 {
            segments.insert(0, (credit, 0));
            logged.available = credit;
            logged.effects.push(LoggedEffect {
                account,
                name: "funds".into(),
                word: EffectWord::Deposited,
                amount: credit,
            });
        }
        loop {
            let page = counter.history(&from, PAGE).await?;
            for found in page.effects {
                let effect = &found.effect;
                let (signs, amount) = (effect.kind.signs(), effect.amount.get());
                let money = segments.entry(found.segment).or_default();
                let after = (money.0 + signs.0 * amount, money.1 + signs.1 * amount);
                if after != (effect.value, effect.held) {
                    let told = || format!("{found:?} comes after {money:?}");
                    logged.broken.get_or_insert_with(told);
                }
                *money = (effect.value, effect.held);
                if let Some((word, of, name)) = word_of(&effect.kind) {
                    logged.available += signs.0 * amount;
                    logged.held += signs.1 * amount;
                    logged.effects.push(LoggedEffect {
                        account: of.map_or(account, |of| self.number_of(of)),
                        name: name.to_owned(),
                        word,
                        amount,
                    });
                }
            }
            from = page.next;
            if page.is_end {
                return Ok(Answer::Logged(logged));
            }
        }
    }

    fn number_of(&self, account: &Account) -> usize {
        let mut all = self.accounts.iter().chain(&self.visitors);
        let number = all.position(|counter| counter.account() == account);
        number.expect("nobody else sends money")
    }

    fn comes_and_goes(&self, account: &Account) -> bool {
        let visitors = self.visitors.iter();
        visitors.map(Counter::account).any(|known| known == account)
    }

    fn numbered(&self, number: usize) -> &Counter {
        let mut all = self.accounts.iter().chain(&self.visitors);
        all.nth(number).unwrap_or(&self.nobody)
    }

    fn account(&self, order: &Order) -> &Counter {
        &self.accounts[order.account]
    }
}

/// What a repeat was told by the server, of an attempt that got no answer.
pub(super) fn of_a_repeat(error: &CounterError) -> Option<&Refusal> {
    match error {
        CounterError::Storage(StorageError { source, .. }) => source.downcast_ref(),
        _ => None,
    }
}

fn name(number: usize) -> String {
    // Braces, as those of a slot in a key.
    format!("{{{number}}}account/{number}")
}

fn id(order: &Order) -> RequestId {
    RequestId::new(order.time_ms, &order.name).expect("a short name")
}

fn ended(ended: Ended) -> Answer {
    Answer::Ended(match ended {
        Ended::Confirmed => End::Confirmed,
        Ended::Cancelled => End::Cancelled,
        Ended::Expired => End::Expired,
    })
}

fn found(found: Found) -> Answer {
    match found {
        Found::NeverSeen => Answer::Unseen,
        Found::Forgotten { mark_ms } => Answer::Unknown(format!("forgotten until {mark_ms}")),
        Found::Decided(state) => match state {
            State::Done | State::Delivered => Answer::Done,
            State::Insufficient => Answer::Insufficient,
            State::Held { .. } => Answer::Held,
            State::Confirmed => Answer::Ended(End::Confirmed),
            State::Cancelled => Answer::Ended(End::Cancelled),
            State::Expired => Answer::Ended(End::Expired),
            State::Returned => Answer::Returned,
            State::Sent { .. } | State::Committed(_) => Answer::Unknown("on its way".into()),
        },
    }
}

fn balance(balance: ringfence_client::counter::Balance) -> Answer {
    let small = |amount: i128| i64::try_from(amount).expect("there is little money here");
    Answer::Balance(Balance {
        available: small(balance.available),
        held: small(balance.held),
        losses: balance.losses,
    })
}

/// The word for an effect, the account of its order if that is another one, and the order's name. None of money that moves
/// between segments.
fn word_of(kind: &EffectKind) -> Option<(EffectWord, Option<&Account>, &str)> {
    let (word, id) = match kind {
        EffectKind::Deposited(id) => (EffectWord::Deposited, id),
        EffectKind::Deducted(id) => (EffectWord::Deducted, id),
        EffectKind::Reserved(id) => (EffectWord::Reserved, id),
        EffectKind::Confirmed(id) => (EffectWord::Confirmed, id),
        EffectKind::Cancelled(id) => (EffectWord::Cancelled, id),
        EffectKind::Expired(id) => (EffectWord::Expired, id),
        EffectKind::Sent(id, _) => (EffectWord::Sent, id),
        EffectKind::Delivered(id, _) => (EffectWord::Delivered, id),
        EffectKind::Returned(id, _) => (EffectWord::Returned, id),
        EffectKind::Received(credit) => {
            let (of, order) = (Some(&credit.from), credit.reservation.as_ref());
            let order = order.unwrap_or(&credit.id);
            return Some((EffectWord::Received, of, order.name()));
        }
        EffectKind::Lent { .. } | EffectKind::Landed { .. } => return None,
    };
    Some((word, None, id.name()))
}
