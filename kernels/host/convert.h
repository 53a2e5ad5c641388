/* SPDX-License-Identifier: MIT */
/*
 * Floating point formats of 16 and 8 bits: to fp32, which is exact, and from fp32, rounded once to
 * nearest even.
 *
 * In integer arithmetic only, so that neither rounding mode nor flush-to-zero of the calling thread
 * changes a bit. A NaN becomes the canonical one (rx_narrow_*: positive, quiet, no payload; fp8:
 * 0x7f). Too large: infinity; fp8-e4m3, which has none: +-448.
 */
#ifndef RX_CONVERT_H
#define RX_CONVERT_H

#include "../../shm/rx_base.h"

float rx_widen_f16(uint16_t code);
float rx_widen_bf16(uint16_t code);
float rx_widen_e4m3(uint8_t code);
float rx_widen_e5m2(uint8_t code);

uint16_t rx_narrow_f16(float value);
uint16_t rx_narrow_bf16(float value);
uint8_t rx_narrow_e4m3(float value);
uint8_t rx_narrow_e5m2(float value);

#endif
