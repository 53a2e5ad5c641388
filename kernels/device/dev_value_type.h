/* SPDX-License-Identifier: MIT */
/* How values of one type enter a fold, are combined, and leave it; included
 * once for each. */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(name)   PASTE(PASTE(name, _), T)
#if IS_FLOAT
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) false
#endif

DEV_FN ACC NAME(dev_combine)(ACC acc, ACC v, uint32_t op)
{
	switch (op) {
	case RX_PROD:
		return (ACC)(acc * v);
	case RX_MAX:
		return (CMP)v > (CMP)acc || IS_NAN(acc) ? v : acc;
	case RX_MIN:
		return (CMP)v < (CMP)acc || IS_NAN(acc) ? v : acc;
	default:
		return (ACC)(acc + v);
	}
}

/* A value as it enters the fold. */
DEV_FN ACC NAME(dev_enter)(ACC v, ACC factor, uint32_t op)
{
	return op == RX_PREMUL_SUM ? (ACC)(v * factor) : v;
}

DEV_FN ACC NAME(dev_leave)(struct dev_average average, ACC acc)
{
	if (!average.is)
		return acc;
#if IS_FLOAT
	if (average.times)
		return acc * ((ACC)1 / (ACC)average.n);
	return acc / (ACC)average.n;
#else
	return (ACC)((CMP)NAME(dev_wrap)(acc) / (CMP)average.n);
#endif
}

#undef IS_NAN
#undef NAME
#undef PASTE
#undef PASTE_
