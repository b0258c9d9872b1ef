//! From the annotated function to the handler.

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::parse::Parser as _;
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, ItemFn, PathArguments, Result, ReturnType, Token, Type, parse_quote};

use crate::krate;

const SHAPE: &str = "expected `async fn name(event: E, ctx: DurableContext) -> Result<R, DurableError>`";

pub(crate) fn expand(attribute: TokenStream, item: &TokenStream) -> Result<TokenStream> {
    let krate = match alias(attribute)? {
        Some(alias) => alias,
        None => krate::find(),
    };
    let mut function: ItemFn = syn::parse2(item.clone())
        .map_err(|_| Error::new(item.span(), format!("#[durable_execution] goes on a function; {SHAPE}")))?;
    check(&function)?;
    // The use is part of the body, so that it shadows nothing outside.
    function.block.stmts.insert(
        0,
        parse_quote! {
            #[allow(unused_imports, reason = "not every handler ends its execution by itself")]
            use ::#krate::TerminationReason;
        },
    );
    Ok(function.into_token_stream())
}

/// `crate = name` in the attribute.
fn alias(attribute: TokenStream) -> Result<Option<syn::Ident>> {
    if attribute.is_empty() {
        return Ok(None);
    }
    let parser = |input: syn::parse::ParseStream<'_>| {
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        input.parse::<syn::Ident>()
    };
    let span = attribute.span();
    let alias = parser.parse2(attribute);
    alias.map(Some).map_err(|_| Error::new(span, "the only argument is `crate = name`, the name of the SDK's crate"))
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(
            signature.fn_token.span,
            format!("a durable function is async: write `async fn`; {SHAPE}"),
        ));
    }
    if let Some(parameter) = signature.generics.params.first() {
        let message = "a durable function has no generic parameters: the event's type must be known to read it";
        return Err(Error::new(parameter.span(), message));
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        return Err(Error::new(
            receiver.span(),
            format!("a durable function has no `self`: make it a free function; {SHAPE}"),
        ));
    }
    let (event, ctx) = match (signature.inputs.first(), signature.inputs.get(1), signature.inputs.get(2)) {
        (Some(event), Some(ctx), None) => (event, ctx),
        (_, _, Some(third)) => {
            return Err(Error::new(
                third.span(),
                format!("a durable function takes two arguments: remove this one; {SHAPE}"),
            ));
        }
        (Some(_), None, None) => {
            return Err(Error::new(
                signature.inputs.span(),
                format!("the context is missing: add `ctx: DurableContext`; {SHAPE}"),
            ));
        }
        (None, _, None) => {
            return Err(Error::new(signature.paren_token.span.join(), format!("the arguments are missing; {SHAPE}")));
        }
    };
    by_value(event, "the event is owned: take it by value")?;
    by_value(ctx, "the context is cheap to clone: take it by value, `ctx: DurableContext`")?;
    check_return(signature)
}

fn by_value(argument: &FnArg, message: &str) -> Result<()> {
    match argument {
        FnArg::Typed(argument) => match argument.ty.as_ref() {
            Type::Reference(reference) => Err(Error::new(reference.span(), format!("{message}; {SHAPE}"))),
            _ => Ok(()),
        },
        FnArg::Receiver(_) => Ok(()),
    }
}

fn check_return(signature: &syn::Signature) -> Result<()> {
    let ReturnType::Type(_, returned) = &signature.output else {
        return Err(Error::new(
            signature.ident.span(),
            format!("a durable function returns a result: add `-> Result<R, DurableError>`; {SHAPE}"),
        ));
    };
    // An alias such as `anyhow::Result<T>` is for the type checker to judge.
    let is_result = match returned.as_ref() {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| {
            segment.ident.to_string().ends_with("Result")
                || matches!(segment.arguments, PathArguments::AngleBracketed(_))
        }),
        _ => false,
    };
    if is_result {
        return Ok(());
    }
    Err(Error::new(
        returned.span(),
        format!("a durable function returns a result: write `Result<R, DurableError>`; {SHAPE}"),
    ))
}
