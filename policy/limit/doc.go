// Package limit bounds concurrency, request rates and slow transfers.
//
//   - Slots limits the number of concurrent operations in the whole process.
//   - Keyed does the same for each key: a user, a sandbox, an account.
//   - Shared gives the slots of the whole process to users in turn, and keeps some for users
//     who hold none. WithUser passes the user to layers that do not know users.
//   - Users knows who sends requests, and the weight of each user in Shared, CPU and Share.
//   - CPU shares the time of the process's own computations, so that other work finds a free CPU.
//   - Share bounds the part of the machine that a user's small operations take while other users are active.
//   - Work slows down work that costs the service more CPU time than its user's processes use.
//   - Rates gives each key a token bucket of requests per minute.
//   - Responses counts the bytes of responses that each key has not yet read, and limits how many
//     large ones are made at the same time.
//   - Connections bounds the connections of HTTP servers, and shares them among the users.
//   - Bodies limits how many large request bodies of each key arrive at the same time.
//   - Descriptors keeps a reserve of file descriptors.
//   - StallTimeout ends HTTP requests whose client neither sends nor reads.
//
// The types are safe for concurrent use and start no goroutine. They know nothing about API keys,
// sandboxes or the API's errors: the caller names the users and turns ErrFull into an answer.
package limit
