#include "chacha.h"

#include <string.h>

enum { ROUNDS = 8, KEY = 4, COUNTER = 12 };

static uint32_t rotate(uint32_t n, int bits)
{
    return n << bits | n >> (32 - bits);
}

static void quarter_round(uint32_t *x, int a, int b, int c, int d)
{
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 7);
}

static uint32_t get_word(const uint8_t *from) /* little endian, on any machine */
{
    return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

static void put_word(uint8_t *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        to[i] = word >> 8 * i;
}

static void next_block(struct chacha *c)
{
    uint32_t x[16];
    memcpy(x, c->state, sizeof x);
    for (int i = 0; i < ROUNDS; i += 2) {
        for (int n = 0; n < 4; n++)
            quarter_round(x, n, n + 4, n + 8, n + 12);
        for (int n = 0; n < 4; n++)
            quarter_round(x, n, 4 + (n + 1) % 4, 8 + (n + 2) % 4, 12 + (n + 3) % 4);
    }
    for (int i = 0; i < 16; i++)
        put_word(c->block + 4 * i, x[i] + c->state[i]);
    if (!++c->state[COUNTER])
        c->state[COUNTER + 1]++;
    c->used = 0;
}

void chacha_begin(struct chacha *c, const uint8_t key[CHACHA_KEY_BYTES])
{
    static const uint8_t constants[] = "expand 32-byte k";
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 4; i++)
        c->state[i] = get_word(constants + 4 * i);
    for (int i = 0; i < 8; i++)
        c->state[KEY + i] = get_word(key + 4 * i);
    c->used = CHACHA_BLOCK_BYTES;
}

void chacha_take(struct chacha *c, uint8_t *to, size_t size)
{
    while (size) {
        if (c->used == CHACHA_BLOCK_BYTES)
            next_block(c);
        size_t left = CHACHA_BLOCK_BYTES - c->used, n = size < left ? size : left;
        memcpy(to, c->block + c->used, n);
        c->used += n;
        to += n;
        size -= n;
    }
}
