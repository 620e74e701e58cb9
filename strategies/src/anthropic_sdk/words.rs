//! The prompt of the Anthropic SDK, rewritten.

crate::words::words! {
    pub(crate) struct SdkWords {
        summary_prompt = PROMPT;
    }
}

const PROMPT: &str = "The task is not finished, and this conversation is about to be cut off here. \
    Write a summary from which the work can be \
continued. Be structured, brief and practical:\n\
1. Task Overview: what was asked, how success is judged, what was clarified\n\
2. Current State: what is done, which files were read, changed or made (with paths), important \
outputs\n\
3. Important Discoveries: constraints, decisions with their reasons, errors and how they were \
solved, what was tried and did not work\n\
4. Next Steps: what to do next, what stands in the way, in which order\n\
5. Context to Preserve: wishes of the user, details of the field, promises made\n\
When in doubt include what keeps work from being done twice. Put the summary between <summary> and \
</summary>.";
