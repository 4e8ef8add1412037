//! Counters over the service: each id takes effect once.

use std::time::{Duration, SystemTime};

use ringfence_api::{
    Error, Reason,
    v1::{
        Account, BatchChangeRequest, CancelRequest, Change, ConfirmRequest, CreateAccountRequest,
        DeductRequest, DepositRequest, Durability, GetBalanceRequest, Leg, RequestId,
        ReservationState, ReserveRequest, TransferRequest, change,
        counter_service_client::CounterServiceClient,
    },
};
use tonic::{Code, transport::Channel};

use super::{monitor::counted, scene::Scene};

fn account(name: &str) -> Option<Account> {
    Some(Account {
        namespace: String::new(),
        name: name.into(),
    })
}

/// The id of a request created now.
#[expect(clippy::disallowed_methods, reason = "callers have no other clock")]
fn id(name: &str) -> Option<RequestId> {
    Some(RequestId {
        created_at: Some(SystemTime::now().into()),
        name: name.into(),
    })
}

async fn created(scene: &Scene, names: &[&str]) -> CounterServiceClient<Channel> {
    let mut counters = scene.counters().await;
    for name in names {
        let create = CreateAccountRequest {
            account: account(name),
            durability: Durability::Memory.into(),
            ..CreateAccountRequest::default()
        };
        counters.create_account(create).await.unwrap();
    }
    counters
}

async fn available(counters: &mut CounterServiceClient<Channel>, name: &str) -> (i64, i64) {
    let ask = GetBalanceRequest {
        account: account(name),
        exact: true,
    };
    let balance = counters.get_balance(ask).await.unwrap().into_inner();
    (balance.available, balance.held)
}

#[tokio::test]
async fn a_repeat_takes_effect_once() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["coins"]).await;
    let gift = DepositRequest {
        account: account("coins"),
        id: id("gift"),
        amount: 100,
        ..DepositRequest::default()
    };
    let order = DeductRequest {
        account: account("coins"),
        id: id("order"),
        amount: 30,
        ..DeductRequest::default()
    };
    for _ in 0..2 {
        counters.deposit(gift.clone()).await.unwrap();
        counters.deduct(order.clone()).await.unwrap();
    }
    assert_eq!(available(&mut counters, "coins").await, (70, 0));
    let too_much = DeductRequest {
        id: id("too much"),
        amount: 71,
        ..order.clone()
    };
    let refused = counters.deduct(too_much).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(Error::from_status(&refused).reason, Reason::Insufficient);
    let other = DeductRequest {
        amount: 31,
        ..order
    };
    let refused = counters.deduct(other).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).reason, Reason::IdConflict);
}

#[tokio::test]
async fn reservations_and_transfers() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["from", "to"]).await;
    counters
        .deposit(DepositRequest {
            account: account("from"),
            id: id("gift"),
            amount: 100,
            ..DepositRequest::default()
        })
        .await
        .unwrap();
    let mut reservation = ReserveRequest {
        account: account("from"),
        id: id("first"),
        amount: 40,
        deadline: None,
        ..ReserveRequest::default()
    };
    let refused = counters.reserve(reservation.clone()).await.unwrap_err();
    assert_eq!(
        Error::from_status(&refused).input.unwrap().field,
        "deadline"
    );
    let created_at = reservation.id.clone().unwrap().created_at.unwrap();
    let at = SystemTime::try_from(created_at).unwrap() + Duration::from_secs(60);
    reservation.deadline = Some(at.into());
    let reserved = counters.reserve(reservation.clone()).await.unwrap();
    assert_eq!(reserved.into_inner().state(), ReservationState::Held);
    assert_eq!(available(&mut counters, "from").await, (60, 40));
    let confirm = ConfirmRequest {
        account: account("from"),
        id: reservation.id.clone(),
        ..ConfirmRequest::default()
    };
    let confirmed = counters.confirm(confirm).await.unwrap();
    assert_eq!(confirmed.into_inner().state(), ReservationState::Confirmed);
    let cancel = CancelRequest {
        account: account("from"),
        id: reservation.id,
    };
    let cancelled = counters.cancel(cancel).await.unwrap();
    assert_eq!(cancelled.into_inner().state(), ReservationState::Confirmed);

    let transfer = TransferRequest {
        account: account("from"),
        id: id("move"),
        amount: 50,
        to: "to".into(),
        ..TransferRequest::default()
    };
    for _ in 0..2 {
        counters.transfer(transfer.clone()).await.unwrap();
    }
    assert_eq!(available(&mut counters, "from").await, (10, 0));
    assert_eq!(available(&mut counters, "to").await, (50, 0));
}

/// Accounts, of which the first has 100.
async fn funded(scene: &Scene, names: &[&str]) -> CounterServiceClient<Channel> {
    let mut counters = created(scene, names).await;
    let gift = DepositRequest {
        account: account(names[0]),
        id: id("gift"),
        amount: 100,
        ..DepositRequest::default()
    };
    counters.deposit(gift).await.unwrap();
    counters
}

fn legs(fees: i64) -> Vec<Leg> {
    let leg = |(to, amount): (&str, i64)| Leg {
        to: to.into(),
        amount,
    };
    [("seller", 20), ("fees", fees)].map(leg).to_vec()
}

/// Reserves 50, and returns the request that pays from them.
async fn to_capture(counters: &mut CounterServiceClient<Channel>) -> ConfirmRequest {
    let order = id("order");
    let created_at = order.clone().unwrap().created_at.unwrap();
    let at = SystemTime::try_from(created_at).unwrap() + Duration::from_secs(60);
    let reservation = ReserveRequest {
        account: account("from"),
        id: order.clone(),
        amount: 50,
        deadline: Some(at.into()),
        ..ReserveRequest::default()
    };
    counters.reserve(reservation).await.unwrap();
    ConfirmRequest {
        account: account("from"),
        id: order,
        legs: legs(2),
        capture_id: id("capture"),
        ..ConfirmRequest::default()
    }
}

#[tokio::test]
async fn money_goes_to_several_accounts_or_to_none() {
    let scene = Scene::set().await;
    let mut counters = funded(&scene, &["from", "seller", "fees"]).await;
    let transfer = TransferRequest {
        account: account("from"),
        id: id("move"),
        legs: legs(3),
        ..TransferRequest::default()
    };
    for _ in 0..2 {
        counters.transfer(transfer.clone()).await.unwrap();
    }
    let confirm = to_capture(&mut counters).await;
    for _ in 0..2 {
        let confirmed = counters.confirm(confirm.clone()).await.unwrap();
        assert_eq!(confirmed.into_inner().state(), ReservationState::Confirmed);
    }
    for (name, has) in [("from", 55), ("seller", 40), ("fees", 5)] {
        assert_eq!(available(&mut counters, name).await, (has, 0), "{name}");
    }
}

#[tokio::test]
async fn bad_legs_name_the_field() {
    type Mistake = fn(&mut ConfirmRequest);
    let scene = Scene::set().await;
    let mut counters = funded(&scene, &["from", "seller", "fees"]).await;
    let confirm = to_capture(&mut counters).await;
    let wrong: [(Mistake, &str); 4] = [
        (|confirm| confirm.amount = 5, "amount"),
        (|confirm| confirm.capture_id = None, "capture_id.created_at"),
        (|confirm| confirm.legs = legs(31), "amount"),
        (|confirm| confirm.legs = legs(0), "legs.amount"),
    ];
    for (change, field) in wrong {
        let mut request = confirm.clone();
        change(&mut request);
        let refused = counters.confirm(request).await.unwrap_err();
        let input = Error::from_status(&refused).input;
        assert_eq!(input.expect(field).field, field);
    }
    let both = TransferRequest {
        account: account("from"),
        id: id("move"),
        to: "seller".into(),
        legs: legs(1),
        ..TransferRequest::default()
    };
    let refused = counters.transfer(both).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).input.unwrap().field, "to");
    assert_eq!(available(&mut counters, "from").await, (50, 50));
}

#[tokio::test]
async fn bad_input_names_the_field() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["coins"]).await;
    let good = DepositRequest {
        account: account("coins"),
        id: id("gift"),
        amount: 1,
        ..DepositRequest::default()
    };
    let amount = DepositRequest {
        amount: 0,
        ..good.clone()
    };
    let no_id = DepositRequest {
        id: None,
        ..good.clone()
    };
    let no_account = DepositRequest {
        account: None,
        ..good.clone()
    };
    for (request, field) in [
        (amount, "amount"),
        (no_id, "id.created_at"),
        (no_account, "account name"),
    ] {
        let refused = counters.deposit(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(Error::from_status(&refused).input.unwrap().field, field);
    }
    let absent = DepositRequest {
        account: account("absent"),
        ..good
    };
    let refused = counters.deposit(absent).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let create = |segments, replicas| CreateAccountRequest {
        account: account("new"),
        segments,
        durability: 3,
        replicas,
        ..CreateAccountRequest::default()
    };
    let unchosen = CreateAccountRequest {
        durability: 0,
        ..create(1, 1)
    };
    for (request, field) in [
        (create(1025, 1), "segments"),
        (create(1, 9), "replicas"),
        (unchosen, "durability"),
    ] {
        let refused = counters.create_account(request).await.unwrap_err();
        assert_eq!(Error::from_status(&refused).input.unwrap().field, field);
    }
}

fn changes(requests: impl IntoIterator<Item = change::Request>) -> BatchChangeRequest {
    let change = |request| Change {
        request: Some(request),
    };
    BatchChangeRequest {
        changes: requests.into_iter().map(change).collect(),
    }
}

fn deposit(name: &str, of: &str, amount: i64) -> change::Request {
    change::Request::Deposit(DepositRequest {
        account: account(of),
        id: id(name),
        amount,
        ..DepositRequest::default()
    })
}

#[tokio::test]
async fn one_call_makes_a_thousand_changes() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["from"]).await;
    let thousand: Vec<_> = (0..1000)
        .map(|nth| deposit(&nth.to_string(), "from", 1))
        .collect();
    // A repeat has the first answers.
    for _ in 0..2 {
        let answers = counters.batch_change(changes(thousand.clone())).await;
        let answers = answers.unwrap().into_inner().answers;
        assert_eq!(answers.len(), 1000);
        assert!(answers.iter().all(|answer| answer.failure.is_none()));
    }
    assert_eq!(available(&mut counters, "from").await, (1000, 0));
    let too_many = counters.batch_change(changes(vec![thousand[0].clone(); 1001]));
    let error = Error::from_status(&too_many.await.unwrap_err());
    assert_eq!(
        error.message,
        "changes is 1001, must be at most 1000 of them"
    );
}

#[tokio::test]
async fn of_many_changes_each_fails_alone() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["from", "to"]).await;
    let gift = changes([deposit("gift", "from", 1000)]);
    counters.batch_change(gift).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "callers have no other clock")]
    let deadline = SystemTime::now() + Duration::from_secs(60);
    let reserve = change::Request::Reserve(ReserveRequest {
        account: account("from"),
        id: id("held"),
        amount: 10,
        deadline: Some(deadline.into()),
        ..ReserveRequest::default()
    });
    let transfer = change::Request::Transfer(TransferRequest {
        account: account("from"),
        id: id("moved"),
        amount: 20,
        to: "to".into(),
        ..TransferRequest::default()
    });
    let deduct = |name: &str, amount| {
        change::Request::Deduct(DeductRequest {
            account: account("from"),
            id: id(name),
            amount,
            ..DeductRequest::default()
        })
    };
    let mut mixed = changes([
        deduct("too much", 2000),
        reserve,
        deposit("nowhere", "nobody", 1),
        transfer,
        deduct("nothing", 0),
        deduct("order", 30),
    ]);
    mixed.changes.push(Change::default());
    let answers = counters.batch_change(mixed).await.unwrap();
    let answers = answers.into_inner().answers;
    let reason = |nth: usize| {
        let failure = answers[nth].failure.clone()?;
        Some(Error::from_detail(failure.error.unwrap(), failure.message).reason)
    };
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6].map(reason),
        [
            Some(Reason::Insufficient),
            None,
            Some(Reason::NoAccount),
            None,
            Some(Reason::InvalidInput),
            None,
            Some(Reason::InvalidInput),
        ]
    );
    assert_eq!(answers[1].state(), ReservationState::Held);
    assert_eq!(available(&mut counters, "from").await, (940, 10));
    assert_eq!(available(&mut counters, "to").await, (20, 0));
}

#[tokio::test]
async fn answers_to_changes_are_counted_single_or_in_a_batch() {
    let scene = Scene::set().await;
    let mut counters = created(&scene, &["coins"]).await;
    let deduct = |name: &str, amount| {
        change::Request::Deduct(DeductRequest {
            account: account("coins"),
            id: id(name),
            amount,
            ..DeductRequest::default()
        })
    };
    let first = changes([deposit("gift", "coins", 5)]);
    counters.batch_change(first).await.unwrap();
    let single = DeductRequest {
        account: account("coins"),
        id: id("single"),
        amount: 1,
        ..DeductRequest::default()
    };
    counters.deduct(single).await.unwrap();
    let more = changes([deduct("a", 2), deduct("b", 9)]);
    counters.batch_change(more).await.unwrap();
    for (change, answer, count) in [
        ("deposit", "done", 1.0),
        ("deduct", "done", 2.0),
        ("deduct", "insufficient", 1.0),
    ] {
        let labels = format!("change=\"{change}\",answer=\"{answer}\"");
        let counted = counted(&scene, "ringfence_changes_total{", &labels).await;
        assert_eq!(counted, count, "{labels}");
    }
}
