//! CounterService: one call per step.

mod accounts;
mod messages;

pub(crate) use messages::{durability, id};

use ringfence_api::{
    Error,
    v1::{
        AcceptAccountRequest, AcceptAccountResponse, Account, CancelRequest, CancelResponse,
        CloseAccountRequest, CloseAccountResponse, ConfirmRequest, ConfirmResponse,
        CreateAccountRequest, CreateAccountResponse, DeductRequest, DeductResponse, DepositRequest,
        DepositResponse, GetAccountRequest, GetAccountResponse, GetBalanceRequest,
        GetBalanceResponse, ResegmentAccountRequest, ResegmentAccountResponse, ReservationState,
        ReserveRequest, ReserveResponse, SweepAccountRequest, SweepAccountResponse,
        TransferRequest, TransferResponse, counter_service_server::CounterService,
    },
};
use ringfence_client::{Client, counter::Reserved};
use tonic::{Request, Response, Status};

use self::{
    accounts::Accounts,
    messages::{amount, balance, ended, segments, swept, terms},
};
use crate::{
    access::{Admitted, Audit, Call, admit},
    deadline::Deadline,
    errors,
    fields::{self, namespace},
};

/// Segments of an account, unless the request sets another number.
const SEGMENTS: u32 = 4;

/// Serves CounterService.
pub(crate) struct Counters {
    accounts: Accounts,
}

impl Counters {
    /// Serves counters of `client`.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            accounts: Accounts::new(client),
        }
    }
}

/// Lets a change of `account` pass.
fn change<T>(request: &Request<T>, account: &Option<Account>) -> Result<Admitted, Error> {
    let (namespace, name) = named(account);
    admit(request, Call::Change(namespace, name))
}

fn named(account: &Option<Account>) -> (&str, &[u8]) {
    let account = account.as_ref();
    account.map_or(("", &[]), |account| {
        (&account.namespace, account.name.as_bytes())
    })
}

#[tonic::async_trait]
impl CounterService for Counters {
    async fn create_account(
        &self,
        request: Request<CreateAccountRequest>,
    ) -> Result<Response<CreateAccountResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Create(namespace, name))?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let segments = match ask.segments {
            0 => SEGMENTS,
            segments => segments,
        };
        let terms = terms(&ask)?;
        let account = ask.account.unwrap_or_default();
        let counters = self.accounts.namespace(&account)?;
        let created = deadline
            .run(counters.create(&account.name, terms, segments))
            .await?;
        created.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(CreateAccountResponse {}))
    }

    async fn deposit(
        &self,
        request: Request<DepositRequest>,
    ) -> Result<Response<DepositResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
        let counter = self.accounts.open(ask.account)?;
        let deposited = deadline.run(counter.deposit(&id, amount)).await?;
        deposited.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(DepositResponse {}))
    }

    async fn deduct(
        &self,
        request: Request<DeductRequest>,
    ) -> Result<Response<DeductResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
        let counter = self.accounts.open(ask.account)?;
        let deducted = deadline.run(counter.deduct(&id, amount)).await?;
        deducted.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(DeductResponse {}))
    }

    async fn get_balance(
        &self,
        request: Request<GetBalanceRequest>,
    ) -> Result<Response<GetBalanceResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let GetBalanceRequest { account, exact } = request.into_inner();
        let counter = self.accounts.open(account)?;
        let found = deadline.run(async {
            match exact {
                true => counter.exact_balance().await,
                false => counter.balance().await,
            }
        });
        let found = found.await?.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(balance(found)?))
    }

    async fn reserve(
        &self,
        request: Request<ReserveRequest>,
    ) -> Result<Response<ReserveResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
        let until_ms = fields::time_ms("deadline", ask.deadline)?;
        let counter = self.accounts.open(ask.account)?;
        let reserved = deadline.run(counter.reserve(&id, amount, until_ms)).await?;
        let reserved = reserved.map_err(|error| errors::counter(&error))?;
        let state = match reserved {
            Reserved::Held => ReservationState::Held,
            Reserved::Ended(how) => ended(how),
        };
        Ok(Response::new(ReserveResponse {
            state: state.into(),
        }))
    }

    async fn confirm(
        &self,
        request: Request<ConfirmRequest>,
    ) -> Result<Response<ConfirmResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let id = id(ask.id)?;
        let counter = self.accounts.open(ask.account)?;
        let confirmed = deadline.run(counter.confirm(&id)).await?;
        let confirmed = confirmed.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(ConfirmResponse {
            state: ended(confirmed).into(),
        }))
    }

    async fn cancel(
        &self,
        request: Request<CancelRequest>,
    ) -> Result<Response<CancelResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let id = id(ask.id)?;
        let counter = self.accounts.open(ask.account)?;
        let cancelled = deadline.run(counter.cancel(&id)).await?;
        let cancelled = cancelled.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(CancelResponse {
            state: ended(cancelled).into(),
        }))
    }

    async fn transfer(
        &self,
        request: Request<TransferRequest>,
    ) -> Result<Response<TransferResponse>, Status> {
        let TransferRequest { account, to, .. } = request.get_ref();
        let (namespace, from) = named(account);
        let _admitted = admit(&request, Call::Transfer(namespace, [from, to.as_bytes()]))?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let (id, amount) = (id(ask.id)?, amount(ask.amount)?);
        let from = ask.account.unwrap_or_default();
        let to = Account {
            namespace: from.namespace.clone(),
            name: ask.to,
        };
        let (from, to) = (
            self.accounts.open(Some(from))?,
            self.accounts.open(Some(to))?,
        );
        let transferred = deadline.run(from.transfer(&id, amount, &to)).await?;
        transferred.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(TransferResponse {}))
    }

    async fn get_account(
        &self,
        request: Request<GetAccountRequest>,
    ) -> Result<Response<GetAccountResponse>, Status> {
        let (namespace, name) = named(&request.get_ref().account);
        let _admitted = admit(&request, Call::Read(namespace, name))?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let found = deadline.run(async {
            let segments = counter.inspect().await?;
            Ok((segments, counter.segments().await.ok()))
        });
        let (found, homes) = found.await?.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(GetAccountResponse {
            homes,
            segments: Some(segments(&found)),
        }))
    }

    async fn resegment_account(
        &self,
        request: Request<ResegmentAccountRequest>,
    ) -> Result<Response<ResegmentAccountResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let ask = request.into_inner();
        let counter = self.accounts.open(ask.account)?;
        let changed = deadline.run(counter.resegment(ask.segments)).await?;
        changed.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(ResegmentAccountResponse {}))
    }

    async fn close_account(
        &self,
        request: Request<CloseAccountRequest>,
    ) -> Result<Response<CloseAccountResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let closed = deadline.run(counter.close()).await?;
        closed.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(CloseAccountResponse {}))
    }

    async fn sweep_account(
        &self,
        request: Request<SweepAccountRequest>,
    ) -> Result<Response<SweepAccountResponse>, Status> {
        let _admitted = change(&request, &request.get_ref().account)?;
        let deadline = Deadline::of(&request);
        let counter = self.accounts.open(request.into_inner().account)?;
        let done = deadline.run(counter.sweep()).await?;
        let done = done.map_err(|error| errors::counter(&error))?;
        Ok(Response::new(swept(&done)))
    }

    async fn accept_account(
        &self,
        request: Request<AcceptAccountRequest>,
    ) -> Result<Response<AcceptAccountResponse>, Status> {
        let _admitted = admit(&request, Call::Admin)?;
        let deadline = Deadline::of(&request);
        let account = request.get_ref().account.as_ref();
        let of =
            account.map(|account| format!("{}/{}", namespace(&account.namespace), account.name));
        let audit = Audit::of(&request, "AcceptAccount", of.unwrap_or_default())?;
        let counter = self.accounts.open(request.into_inner().account)?;
        let before = async {
            let before = deadline.run(counter.accept()).await?;
            before.map_err(|error| errors::counter(&error))
        };
        let before = audit.run(before).await?;
        Ok(Response::new(AcceptAccountResponse {
            before: Some(segments(&before)),
        }))
    }
}
