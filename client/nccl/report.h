/* SPDX-License-Identifier: MIT */
/* Telling rcclxctl run that its command has come to use these libraries. */
#ifndef NCCL_REPORT_H
#define NCCL_REPORT_H

/** report_use() - this process has formed a communicator; said once */
void report_use(void);

#endif
