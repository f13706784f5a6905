"""Posts that become decisions, in batches.

`packets` takes the steps of acceptance for a batch (`batcher`), and gives its tokens to the worker processes
(`workers`), where `token_jobs` verifies them. `enrolments` and `enrolment_jobs` do the same for enrolments.
"""
