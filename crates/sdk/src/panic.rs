//! Panics of user code become errors with message and place, so that no execution is lost to one.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

use futures_util::FutureExt as _;

use crate::{BoxError, DurableError};

thread_local! {
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The place of a panic is told to the hook only. Ours notes it and passes on to the one that was there.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if LISTENING.get() {
                let place = info.location().map(ToString::to_string);
                PLACE.with(|slot| *slot.borrow_mut() = place);
            }
            previous(info);
        }));
    });
}

/// Runs user code to its end. A panic is an error like any other.
pub(crate) async fn guard<T>(body: impl Future<Output = Result<T, BoxError>>) -> Result<T, DurableError> {
    install_hook();
    let mut body = pin!(AssertUnwindSafe(body).catch_unwind());
    let caught = std::future::poll_fn(|cx| {
        let outer = LISTENING.replace(true);
        let polled = body.as_mut().poll(cx);
        LISTENING.set(outer);
        match polled {
            Poll::Ready(Ok(result)) => Poll::Ready(Ok(result)),
            Poll::Ready(Err(payload)) => {
                let place = PLACE.with(|slot| slot.borrow_mut().take());
                Poll::Ready(Err(error_of(payload.as_ref(), place)))
            }
            Poll::Pending => Poll::Pending,
        }
    });
    caught.await?.map_err(DurableError::from_user)
}

fn error_of(payload: &(dyn Any + Send), place: Option<String>) -> DurableError {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a value that is no text".to_owned());
    let message = match &place {
        Some(place) => format!("panicked at {place}: {text}"),
        None => format!("panicked: {text}"),
    };
    DurableError::UserCode { message, error_type: "Panic".to_owned(), stack_trace: place }
}
