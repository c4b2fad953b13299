// Folders that are named after the batch job that writes them.
#pragma once

#include <string>

#include <kolo/core/base/batch_job.h>

namespace kolo::models {

/// `folder` with {job} and {array} replaced by the job's number and by its task of an array. option: what it
/// was given to, for errors. Throws UsageError for another name in braces, and where `job` has no such
/// number.
std::string in_batch_job(const std::string& option, const std::string& folder,
                         const kolo::detail::BatchJob& job);

}  // namespace kolo::models
