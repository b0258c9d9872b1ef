//! The attribute of durable functions. It checks the signature and leaves the function what it is: a handler, because every
//! async function of that shape is one.

mod expand;
mod krate;

use proc_macro::TokenStream;

/// Marks `async fn(event: E, ctx: DurableContext) -> Result<R, DurableError>` as a durable function.
///
/// `TerminationReason` is in scope inside its body. The SDK is found under the name that `Cargo.toml` gives it;
/// `#[durable_execution(crate = name)]` says it outright.
#[proc_macro_attribute]
pub fn durable_execution(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), &item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
