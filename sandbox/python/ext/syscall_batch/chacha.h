/* ChaCha with 8 rounds, as a generator of random bytes. */
#ifndef CHACHA_H
#define CHACHA_H

#include <stddef.h>
#include <stdint.h>

enum { CHACHA_KEY_BYTES = 32, CHACHA_BLOCK_BYTES = 64 };

struct chacha {
    uint32_t state[16]; /* constants, key, counter of 64 bits, nonce of 64 bits, which is 0 */
    uint8_t block[CHACHA_BLOCK_BYTES];
    uint32_t used; /* bytes of the block */
};

void chacha_begin(struct chacha *c, const uint8_t key[CHACHA_KEY_BYTES]);

/* Writes the next bytes of the stream. */
void chacha_take(struct chacha *c, uint8_t *to, size_t size);

#endif
