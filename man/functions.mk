# SPDX-License-Identifier: MIT
# Pages of functions, made from the docstrings in client/rcclx.h. tests/lint/man.sh compares the list.

function_pages = \
	man/man3/rcclx_version.3 \
	man/man3/rcclx_strerror.3 \
	man/man3/rcclx_last_error.3 \
	man/man3/rcclx_connect.3 \
	man/man3/rcclx_disconnect.3 \
	man/man3/rcclx_unique_id_create.3 \
	man/man3/rcclx_unique_id_of_name.3 \
	man/man3/rcclx_comm_create.3 \
	man/man3/rcclx_comm_destroy.3 \
	man/man3/rcclx_comm_abort.3 \
	man/man3/rcclx_comm_status.3 \
	man/man3/rcclx_comm_rank.3 \
	man/man3/rcclx_comm_size.3 \
	man/man3/rcclx_comm_split.3 \
	man/man3/rcclx_comm_duplicate.3 \
	man/man3/rcclx_comm_shrink.3 \
	man/man3/rcclx_mem_alloc.3 \
	man/man3/rcclx_mem_free.3 \
	man/man3/rcclx_mem_register.3 \
	man/man3/rcclx_mem_deregister.3 \
	man/man3/rcclx_all_reduce.3 \
	man/man3/rcclx_barrier.3 \
	man/man3/rcclx_all_gather.3 \
	man/man3/rcclx_reduce_scatter.3 \
	man/man3/rcclx_all_to_all.3 \
	man/man3/rcclx_broadcast.3 \
	man/man3/rcclx_reduce.3 \
	man/man3/rcclx_gather.3 \
	man/man3/rcclx_scatter.3 \
	man/man3/rcclx_all_gather_v.3 \
	man/man3/rcclx_reduce_scatter_v.3 \
	man/man3/rcclx_all_to_all_v.3 \
	man/man3/rcclx_send.3 \
	man/man3/rcclx_recv.3 \
	man/man3/rcclx_all_reduce_start.3 \
	man/man3/rcclx_barrier_start.3 \
	man/man3/rcclx_all_gather_start.3 \
	man/man3/rcclx_reduce_scatter_start.3 \
	man/man3/rcclx_all_to_all_start.3 \
	man/man3/rcclx_broadcast_start.3 \
	man/man3/rcclx_reduce_start.3 \
	man/man3/rcclx_gather_start.3 \
	man/man3/rcclx_scatter_start.3 \
	man/man3/rcclx_all_gather_v_start.3 \
	man/man3/rcclx_reduce_scatter_v_start.3 \
	man/man3/rcclx_all_to_all_v_start.3 \
	man/man3/rcclx_send_start.3 \
	man/man3/rcclx_recv_start.3 \
	man/man3/rcclx_op_test.3 \
	man/man3/rcclx_op_wait.3 \
	man/man3/rcclx_op_free.3 \
	man/man3/rcclx_group_start.3 \
	man/man3/rcclx_group_end.3 \
	man/man3/rcclx_group_end_start.3
