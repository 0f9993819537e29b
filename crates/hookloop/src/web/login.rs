//! Logins of people. A link that works once, or a token that a person pastes, becomes a cookie; all of it is in memory
//! and over with the program.
//!
//! Agents are given a token too, for MCP. The agents' token opens no page: decisions on pages are for people.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hookloop_core::digest::hex;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use tokio::sync::Semaphore;

use super::token::AccessToken;

/// How long the link can be used.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a login lasts.
pub(super) const LOGIN_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Logins at a time; with one more the oldest is over.
const LOGINS_MAX: usize = 32;
/// How long a wrong login waits for the answer, and how many wait at once. A correct token does not wait.
const WRONG_PAUSE: Duration = Duration::from_secs(1);
const WRONG_MAX: usize = 4;
/// 128 bits for the link, 256 for the cookie.
const CODE_BYTES: usize = 16;
const COOKIE_BYTES: usize = 32;

type Sha = [u8; 32];

pub(super) struct LoginTable {
    token: AccessToken,
    link: Mutex<Option<LoginLink>>,
    /// The oldest first.
    logins: Mutex<Vec<PersonLogin>>,
    wrong: Semaphore,
}

struct LoginLink {
    code: Sha,
    made: Instant,
}

struct PersonLogin {
    /// The hash of a cookie's value, so that leaked memory does not contain it.
    cookie: Sha,
    made: Instant,
}

/// The reason of a refused login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLoggedIn {
    Wrong,
    /// Too many wrong logins at the same time.
    Busy,
    /// There is nothing to make a secret of.
    NoRandomness,
}

impl std::fmt::Debug for LoginTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Logins(…)")
    }
}

impl LoginTable {
    /// With the code of the link.
    pub(super) fn new(token: AccessToken) -> std::io::Result<(LoginTable, String)> {
        let code = random::<CODE_BYTES>()?;
        let link = LoginLink { code: sha(code.as_bytes()), made: Instant::now() };
        let logins = LoginTable {
            token,
            link: Mutex::new(Some(link)),
            logins: Mutex::default(),
            wrong: Semaphore::new(WRONG_MAX),
        };
        Ok((logins, code))
    }

    /// Returns a cookie for the code of a link, which is used up.
    pub(super) async fn by_code(&self, shown: &str) -> Result<String, NotLoggedIn> {
        let is_right = self.take_link(shown, Instant::now());
        self.answer(is_right).await
    }

    pub(super) async fn by_token(&self, shown: &str) -> Result<String, NotLoggedIn> {
        self.answer(self.token.is(shown.trim().as_bytes())).await
    }

    /// Whether it is the token itself that is shown.
    pub(super) fn is_token(&self, shown: &[u8]) -> bool {
        self.token.is(shown)
    }

    pub(super) fn knows(&self, cookie: &[u8]) -> bool {
        self.knows_at(cookie, Instant::now())
    }

    pub(super) fn log_out(&self, cookie: &[u8]) {
        let cookie = sha(cookie);
        lock(&self.logins).retain(|login| !bool::from(login.cookie.ct_eq(&cookie)));
    }

    fn take_link(&self, shown: &str, now: Instant) -> bool {
        let mut link = lock(&self.link);
        let is_fresh = |link: &LoginLink| now.duration_since(link.made) < LINK_LIFE;
        let is_it = |link: &LoginLink| bool::from(link.code.ct_eq(&sha(shown.as_bytes())));
        match link.as_ref() {
            Some(known) if is_it(known) => link.take().is_some_and(|link| is_fresh(&link)),
            _ => false,
        }
    }

    async fn answer(&self, is_right: bool) -> Result<String, NotLoggedIn> {
        if is_right {
            return self.log_in(Instant::now()).map_err(|_| NotLoggedIn::NoRandomness);
        }
        let _place = self.wrong.try_acquire().map_err(|_| NotLoggedIn::Busy)?;
        tokio::time::sleep(WRONG_PAUSE).await;
        Err(NotLoggedIn::Wrong)
    }

    fn log_in(&self, now: Instant) -> std::io::Result<String> {
        let cookie = random::<COOKIE_BYTES>()?;
        let mut logins = lock(&self.logins);
        if logins.len() == LOGINS_MAX {
            logins.remove(0);
        }
        logins.push(PersonLogin { cookie: sha(cookie.as_bytes()), made: now });
        Ok(cookie)
    }

    fn knows_at(&self, cookie: &[u8], now: Instant) -> bool {
        let cookie = sha(cookie);
        let mut logins = lock(&self.logins);
        logins.retain(|login| now.duration_since(login.made) < LOGIN_LIFE);
        // All logins are compared, so that the time does not depend on the match.
        let found = logins.iter().map(|login| login.cookie.ct_eq(&cookie));
        found.fold(Choice::from(0), |any, one| any | one).into()
    }
}

fn sha(bytes: &[u8]) -> Sha {
    Sha256::digest(bytes).into()
}

fn random<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins() -> (LoginTable, String) {
        LoginTable::new(AccessToken::new("0123")).unwrap()
    }

    #[test]
    fn a_login_link_works_once_and_expires() {
        let (logins, code) = logins();
        assert_eq!(code.len(), 32);
        let now = Instant::now();
        assert!(!logins.take_link("", now) && !logins.take_link(&code[1..], now));
        assert!(logins.take_link(&code, now));
        assert!(!logins.take_link(&code, now));
        let (logins, code) = self::logins();
        assert!(!logins.take_link(&code, now + LINK_LIFE + Duration::from_secs(1)));
    }

    #[test]
    fn a_login_ends_at_its_expiry_and_at_logout() {
        let (logins, _) = logins();
        let now = Instant::now();
        let cookies: Vec<String> = (0..=LOGINS_MAX).map(|_| logins.log_in(now).unwrap()).collect();
        let knows = |cookie: &String, now| logins.knows_at(cookie.as_bytes(), now);
        assert!(!knows(&cookies[0], now), "the oldest of too many");
        assert!(knows(&cookies[1], now) && knows(&cookies[LOGINS_MAX], now));
        logins.log_out(cookies[1].as_bytes());
        assert!(!knows(&cookies[1], now) && knows(&cookies[2], now));
        assert!(!knows(&"0".repeat(64), now));
        assert!(!knows(&cookies[2], now + LOGIN_LIFE));
    }

    #[tokio::test]
    async fn wrong_tokens_are_delayed_and_do_not_delay_valid_logins() {
        let (logins, code) = logins();
        let logins = std::sync::Arc::new(logins);
        let began = Instant::now();
        let mut tries = tokio::task::JoinSet::new();
        for _ in 0..WRONG_MAX + 2 {
            let logins = std::sync::Arc::clone(&logins);
            tries.spawn(async move { logins.by_token("0124").await });
        }
        tokio::task::yield_now().await;
        assert!(logins.by_token("0123\n").await.is_ok());
        assert!(logins.by_code(&code).await.is_ok());
        assert!(began.elapsed() < WRONG_PAUSE);
        let told = tries.join_all().await;
        let busy = told.iter().filter(|told| **told == Err(NotLoggedIn::Busy)).count();
        assert_eq!((busy, told.len()), (2, WRONG_MAX + 2));
        assert!(began.elapsed() >= WRONG_PAUSE);
    }
}
