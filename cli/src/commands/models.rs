//! `posse models`: lists models, and tests one.

mod list;
mod test;

use super::{Common, folder};
use crate::args::{ModelsOptions, ModelsVerb};
use crate::exit::{Code, Failure};

pub async fn run(common: Common, options: ModelsOptions) -> Result<Code, Failure> {
    let config = common.config(&folder(None)?)?;
    let models = common.models(&config)?;
    match options.verb {
        Some(ModelsVerb::Test { model }) => test::run(&common, &models, &model).await,
        None => list::run(&common, &config, &models, options.filter.as_deref()).await,
    }
}
